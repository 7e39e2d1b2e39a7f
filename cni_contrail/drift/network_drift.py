"""Which changes in a network's namespace concern what the network should have. Pure: no kernel.

A change may be in order nevertheless, such as one that an audit has just made: the next audit tells.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

from cni_contrail.datapath.bridge import parse_bridge
from cni_contrail.datapath.bridge_ports import parse_port
from cni_contrail.datapath.desired import GATEWAY_MAC, UPLINK, Network, Underlay
from cni_contrail.datapath.entries import Entries, entries_of
from cni_contrail.datapath.remote_entries import Held, with_remotes
from cni_contrail.datapath.tunnel_messages import parse_tunnel_port
from cni_contrail.datapath.tunnel_names import BRIDGED
from cni_contrail.drift.kernel_change import (
    AddressGone,
    FilterChanged,
    ForwardingChanged,
    KernelChange,
    LinkGone,
    LinkSet,
    NamespaceGone,
    NeighbourChanged,
    PolicyRuleChanged,
    RouteChanged,
)
from cni_contrail.drift.possible_drift import PossibleDrift, gone_links, programs_of, without_intermediate
from cni_contrail.link.bridge_port import BRIDGE, BRIDGE_INDEXES
from cni_contrail.link.links import parse_mtu


def network_drift(network: Network, underlay: Underlay, changes: Sequence[KernelChange]) -> PossibleDrift:
    """Returns what of a network may differ after these changes in its namespace."""
    gone = gone_links(changes)
    judge = _Judge(network, underlay, gone)
    remaining = _with_last_of_gateway(without_intermediate(changes))
    objects = frozenset(kind for change in remaining if (kind := judge.kind_of(change)))
    return PossibleDrift(objects, programs_of(changes), frozenset(gone.values()) & judge.macs.keys())


def _with_last_of_gateway(changes: Sequence[KernelChange]) -> list[KernelChange]:
    """Returns the changes with only the last one of the gateways' entry: a new bridge gets its own entry twice."""
    last = next((each for each in reversed(changes) if _is_of_gateway(each)), None)
    return [each for each in changes if each is last or not _is_of_gateway(each)]


def _is_of_gateway(change: KernelChange) -> bool:
    return isinstance(change, ForwardingChanged) and change.mac == GATEWAY_MAC


class _Judge:
    """Names the kind of object that a change concerns, empty if it is none of the network's."""

    def __init__(self, network: Network, underlay: Underlay, gone: Collection[int]) -> None:
        self._network = network
        self._underlay = underlay
        self._gone = gone
        self._has_uplink = network.snat or network.forwarding
        self.macs = {port.link: port.mac for port in network.ports}
        self._mtus = {port.link: port.mtu for port in network.ports}
        self._gateways = {each.address for each in network.gateways}

    @functools.cached_property
    def _entries(self) -> Entries:
        local = entries_of(self._network, frozenset(self.macs))
        return with_remotes(local, self._network, self._underlay, Held(frozenset(), frozenset()))

    def kind_of(self, change: KernelChange) -> str:
        match change:
            case FilterChanged():
                return "filter"
            case NamespaceGone():
                return "namespace"
            case LinkSet() | LinkGone():
                return self._kind_of_link(change.name) if self._is_wrong(change) else ""
            case NeighbourChanged() | ForwardingChanged():
                return self._kind_of_entry(change)
            case AddressGone():
                return self._kind_of_address(change)
            case PolicyRuleChanged(is_drift):
                return "route" if is_drift else ""
            case RouteChanged():  # notified of the node's own namespace only
                return ""

    def _kind_of_link(self, name: str) -> str:
        if name == UPLINK:
            return "uplink" if self._has_uplink else ""
        if name in BRIDGED:
            return "tunnel" if self._network.nodes() else ""
        if name == BRIDGE:
            return "bridge"
        return "port" if name in self.macs else ""

    def _is_wrong(self, change: LinkSet | LinkGone) -> bool:
        if change.name in self.macs and change.ifindex in self._gone:
            return False  # a lost port, which is set down before it goes
        if isinstance(change, LinkGone):
            return True
        if change.name in self.macs:
            port = parse_port(change.body)
            is_right = port.master in BRIDGE_INDEXES and port.has_settings and change.is_up
            return not is_right or port.is_blocked or parse_mtu(change.body) < self._mtus[change.name]
        if change.name in BRIDGED:
            tunnel = parse_tunnel_port(change.body)
            is_right = change.is_up and tunnel.has_settings and not tunnel.is_blocked
            return not is_right or parse_mtu(change.body) != self._network.longest_packet
        if change.name == BRIDGE and not change.is_bridge_port:
            bridge = parse_bridge(change.body)
            return bridge is None or not bridge.is_right(self._network.mtu)
        return not change.is_up or (change.name == UPLINK and parse_mtu(change.body) != self._network.mtu)

    def _kind_of_entry(self, change: NeighbourChanged | ForwardingChanged) -> str:
        if isinstance(change, ForwardingChanged):
            is_ours = self._is_forwarding_of_ours(change) and change.ifindex not in self._gone
            return "forwarding entry" if is_ours else ""
        is_right = self._entries.neighbours.get(change.address, change.mac) == change.mac
        return "" if is_right or change.ifindex not in BRIDGE_INDEXES else "neighbour"

    def _is_forwarding_of_ours(self, change: ForwardingChanged) -> bool:
        if change.is_gone:
            return change.mac in self._entries.forwarding
        if change.mac == GATEWAY_MAC:
            return change.ifindex not in BRIDGE_INDEXES
        return change.mac in self.macs.values()  # one that was set for a pod of another node is usually ours

    def _kind_of_address(self, change: AddressGone) -> str:
        if change.ifindex not in BRIDGE_INDEXES:  # ports have no addresses
            return "uplink" if self._has_uplink and change.ifindex not in self._gone else ""
        return "gateway" if change.address in self._gateways else ""
