"""Ports of a pod for the manager's API, from the agent in the same process."""

from collections.abc import Sequence

from agent_api.datapath.port_state import PortState
from agent_api.node_agent import NodeAgent
from contrail_config.objects import VirtualMachine
from manager.api.queries import FindPorts
from manager.api.types import PortDrops, PortView


def port_finder(agent: NodeAgent) -> FindPorts:
    """Returns what finds the ports of a virtual machine."""

    def find(virtual_machine: VirtualMachine, names: Sequence[str]) -> list[PortView]:
        states = agent.port_states(virtual_machine)
        return [
            _view(virtual_machine, index, name, state)
            for index, (name, state) in enumerate(zip(names, states, strict=True))
        ]

    return find


def _view(virtual_machine: VirtualMachine, index: int, name: str, state: PortState) -> PortView:
    port = state.port
    return PortView(
        namespace=virtual_machine.namespace,
        pod=virtual_machine.pod,
        index=index,
        name=name,
        interface=virtual_machine.interfaces[index].uuid,
        condition=state.condition.value,
        reason=state.reason or None,
        link=port.host_ifname if port else None,
        container=(port.vm_id or None) if port else None,
        drops=_drops(state),
    )


def _drops(state: PortState) -> PortDrops | None:
    if state.port is None or state.drops is None:
        return None
    of_port = state.drops.ports.get(state.port.host_ifname, 0)
    return PortDrops(of_port, state.drops.spoofing, state.drops.broadcast, state.drops.mtu)
