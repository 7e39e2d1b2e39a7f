"""Refused interfaces: those that the node must not connect at this moment, so that ADD fails and says why."""

from collections.abc import Callable, Sequence

from agent_api.datapath.desired_state import Computation
from agent_api.datapath.fabric import Fabric
from agent_api.datapath.index_0 import interface_problem, refused_index_0
from agent_api.datapath.known_virtual_machines import KnownVirtualMachines
from agent_api.datapath.number_refusals import number_refusal
from agent_api.datapath.refusals import name_of, with_reserved_mac, without_vni
from contrail_config.objects import PodNetwork, Refusal, VirtualMachine, VirtualMachineInterface

LinkOf = Callable[[VirtualMachine, VirtualMachineInterface], str | None]
"""Returns the name of an interface's host end, None if it is not plugged."""


class RefusedInterfaces:
    """`compute` returns the desired state of this moment, which is asked for only where networks share a number."""

    def __init__(
        self,
        virtual_machines: KnownVirtualMachines,
        fabric: Fabric | None,
        fabric_subnets: Sequence[str],
        *,
        link_of: LinkOf,
        compute: Callable[[], Computation],
    ) -> None:
        self._virtual_machines = virtual_machines
        self._fabric = fabric
        self._fabric_subnets = fabric_subnets
        self._link_of = link_of
        self._compute = compute

    def of(self, virtual_machine: VirtualMachine) -> dict[int, str]:
        """Returns why interfaces of a virtual machine must not be connected now, by index."""
        found = {}
        for index, interface in enumerate(virtual_machine.interfaces):
            refusal = self._refusal(interface, index)
            if refusal is not None:
                found[index] = refusal.message
        return found

    def _refusal(self, interface: VirtualMachineInterface, index: int) -> Refusal | None:
        """Returns why an interface must not be connected; of what other networks do, as they are at this moment."""
        if index > 0:
            return self._refusal_of_network(interface)
        problem = interface_problem(interface)
        if problem is not None or interface.pod_network is PodNetwork.CLUSTER:
            return problem
        return self._refusal_of_number(interface) or self._refusal_of_addresses(interface)

    def _refusal_of_network(self, interface: VirtualMachineInterface) -> Refusal | None:
        own = number_refusal(interface, self._fabric) or with_reserved_mac(interface) if interface.vni else None
        return own or self._refusal_of_number(interface)

    def _refusal_of_number(self, interface: VirtualMachineInterface) -> Refusal | None:
        if not interface.vni:
            return without_vni(name_of(interface))
        if not self._virtual_machines.vnis.are_several(interface.vni):
            return None
        return next((each for each in self._compute().refused if _is_about(each, interface)), None)

    def _refusal_of_addresses(self, interface: VirtualMachineInterface) -> Refusal | None:
        if interface.pod_network is not None:
            return None
        virtual_machines = self._virtual_machines.all()
        refused = refused_index_0(
            virtual_machines, lambda *each: self._link_of(*each) is not None, self._fabric_subnets
        )
        return refused.get(interface.network_uuid)


def _is_about(refusal: Refusal, interface: VirtualMachineInterface) -> bool:
    return (refusal.network, refusal.vni, refusal.subnet) == (interface.network, interface.vni, None)
