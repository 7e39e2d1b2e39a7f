"""Ports of a pod for the manager's API, from the agent in the same process."""

from collections.abc import Sequence

from agent_api.datapath.port_state import PortState
from agent_api.node_agent import NodeAgent
from cni_contrail.datapath.namespaces import name_of
from contrail_config.objects import VirtualMachine
from manager.api.queries import FindPorts
from manager.api.types import PortCounters, PortDrops, PortView


def port_finder(agent: NodeAgent) -> FindPorts:
    """Returns what finds the ports of a virtual machine."""
    has_namespaces = agent.datapath is not None

    def find(virtual_machine: VirtualMachine, names: Sequence[str]) -> list[PortView]:
        states = agent.port_states(virtual_machine)
        return [
            _view(virtual_machine, index, name, state, has_namespaces=has_namespaces)
            for index, (name, state) in enumerate(zip(names, states, strict=True))
        ]

    return find


def _view(
    virtual_machine: VirtualMachine, index: int, name: str, state: PortState, *, has_namespaces: bool
) -> PortView:
    port, interface = state.port, virtual_machine.interfaces[index]
    is_in_network = has_namespaces and port is not None and index > 0 and interface.vni > 0
    return PortView(
        namespace=virtual_machine.namespace,
        pod=virtual_machine.pod,
        index=index,
        name=name,
        interface=interface.uuid,
        condition=state.condition.value,
        reason=state.reason or None,
        link=port.host_ifname if port else None,
        link_namespace=name_of(interface.vni) if is_in_network else None,
        container=(port.vm_id or None) if port else None,
        counters=_counters(state),
        drops=_drops(state, is_routed=index == 0),
    )


def _counters(state: PortState) -> PortCounters | None:
    """Returns them from the pod's side: what its host end has received is what the pod has sent."""
    counted = state.counters
    if counted is None:
        return None
    return PortCounters(
        sent_packets=counted.received_packets,
        sent_bytes=counted.received_bytes,
        received_packets=counted.sent_packets,
        received_bytes=counted.sent_bytes,
    )


def _drops(state: PortState, *, is_routed: bool) -> PortDrops | None:
    drops = state.drops
    if state.port is None or drops is None:
        return None
    return PortDrops(
        spoofing=drops.ports.get(state.port.host_ifname, 0),
        network_spoofing=drops.spoofing,
        network_broadcast=drops.broadcast,
        network_tunnel=drops.tunnel if is_routed else None,
        network_mtu=None if is_routed else drops.mtu,
    )
