"""Ports of a pod as managers show them: from the pod's side, and with the names of kernel objects."""

from collections.abc import Sequence

from agent_api.datapath.names import network_namespace
from agent_api.datapath.port_state import PortState
from contrail_config.objects import VirtualMachineInterface
from contrail_config.port_readings import PortCounters, PortDrops, PortReading


def port_readings(
    interfaces: Sequence[VirtualMachineInterface], states: Sequence[PortState], *, has_namespaces: bool
) -> list[PortReading]:
    """Returns the ports of these interfaces, of which `states` has one each.

    `has_namespaces`: the datapath puts host ends into the namespaces of their networks.
    """
    return [
        _reading(interface, index, state, has_namespaces=has_namespaces)
        for index, (interface, state) in enumerate(zip(interfaces, states, strict=True))
    ]


def _reading(interface: VirtualMachineInterface, index: int, state: PortState, *, has_namespaces: bool) -> PortReading:
    port = state.port
    is_in_network = has_namespaces and port is not None and index > 0 and interface.vni > 0
    return PortReading(
        interface=interface.uuid,
        condition=state.condition.value,
        reason=state.reason or None,
        link=port.host_ifname if port else None,
        link_namespace=network_namespace(interface.vni) if is_in_network else None,
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
