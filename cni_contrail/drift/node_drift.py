"""Which changes in the node's own namespace concern routed ports, or the uplink of a network. Pure: no kernel.

A change may be in order nevertheless, such as one that an audit has just made: the next audit tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cni_contrail.datapath.desired import Network, Routed, Underlay
from cni_contrail.datapath.routed_entries import has_ipv6
from cni_contrail.datapath.routed_messages import desired_settings, parse_settings
from cni_contrail.datapath.tunnel_names import ROUTED_PREFIX, node_gateway, node_mac
from cni_contrail.datapath.uplink_rules import ALIAS_PREFIX, network_of_uplink, node_link
from cni_contrail.drift.kernel_change import (
    AddressGone,
    FilterChanged,
    KernelChange,
    LinkGone,
    LinkSet,
    NeighbourChanged,
    PolicyRuleChanged,
    RouteChanged,
)
from cni_contrail.drift.possible_drift import PossibleDrift, gone_links, programs_of, without_intermediate
from cni_contrail.link.links import parse_link, parse_mtu

_HOST_LENGTHS = (32, 128)


def routed_drift(routed: Routed, underlay: Underlay, changes: Sequence[KernelChange]) -> PossibleDrift:
    """Returns what of index 0, here and on other nodes, may differ after these changes in the node's namespace."""
    gone = gone_links(changes)
    judge = _RoutedJudge(routed, underlay)
    remaining = [
        change
        for change in without_intermediate(changes)
        if isinstance(change, LinkGone) or getattr(change, "ifindex", 0) not in gone
    ]
    objects = frozenset(kind for change in remaining if (kind := judge.kind_of(change)))
    return PossibleDrift(objects, programs_of(changes), frozenset(gone.values()) & judge.ports.keys())


class _RoutedJudge:
    """Names the kind of object that a change concerns, empty if it is none of index 0's."""

    def __init__(self, routed: Routed, underlay: Underlay) -> None:
        self.ports = {port.link: port for port in routed.ports}
        self._macs = {address: port.mac for port in routed.ports for address in port.addresses}
        self._gateways = {gateway for port in routed.ports for gateway in port.gateways}
        self._has_filter = bool(routed.ports or underlay.addresses)
        self._blocks = frozenset[str]()
        self._tunnel_mtu = None if underlay.routed is None else underlay.routed.longest_packet
        if underlay.routed is not None:
            blocks = [*underlay.routed.own_blocks, *(each.cidr for each in underlay.routed.remotes)]
            self._blocks = frozenset(blocks)
            self._gateways |= set(underlay.routed.addresses)
            self._macs |= {node_gateway(node): node_mac(node) for node in underlay.routed.nodes()}

    def kind_of(self, change: KernelChange) -> str:
        match change:
            case FilterChanged():
                return "filter" if self._has_filter else ""
            case LinkSet() | LinkGone() if change.name.startswith(ROUTED_PREFIX):
                return "tunnel" if self._tunnel_mtu is not None and not self._is_right_tunnel(change) else ""
            case LinkSet():
                return "port" if self._is_wrong(change) else ""
            case AddressGone():
                return "gateway" if change.address in self._gateways else ""
            case NeighbourChanged():
                return "" if self._macs.get(change.address, change.mac) == change.mac else "neighbour"
            case RouteChanged():
                is_host = change.destination in self._macs and change.length in _HOST_LENGTHS
                return "route" if is_host or f"{change.destination}/{change.length}" in self._blocks else ""
            case PolicyRuleChanged():  # other programs' rules, which may divert packets
                return "route" if self.ports else ""
            case _:
                return ""

    def _is_right_tunnel(self, change: LinkSet | LinkGone) -> bool:
        return isinstance(change, LinkSet) and change.is_up and parse_mtu(change.body) == self._tunnel_mtu

    def _is_wrong(self, change: LinkSet) -> bool:
        port = self.ports.get(change.name)
        if port is None or change.is_bridge_port:
            return False
        if parse_mtu(change.body) < port.mtu:
            return True
        return parse_settings(change.body) != desired_settings(ipv6=has_ipv6(port), group=port.network)


def drifted_uplinks(
    networks: Sequence[Network], changes: Sequence[KernelChange], name_of: Callable[[int], str]
) -> set[int]:
    """Returns the networks whose uplink on the node may differ.

    `name_of` returns the name of a link that exists, or an empty one. The node's rules for all uplinks are brought to
    their desired state with any one of them.
    """
    owners = {node_link(network.vni): network for network in networks if network.snat or network.forwarding}
    if not owners:
        return set()
    found = set()
    for change in changes:
        match change:
            case FilterChanged():
                found.add(min(network.vni for network in owners.values()))
            case LinkGone(_, name, False) if name in owners:
                found.add(owners[name].vni)
            case LinkSet(_, name, is_up, False, body) if name in owners:
                is_right = is_up and parse_mtu(body) == owners[name].mtu
                found.update(() if is_right else (owners[name].vni,))
            case LinkSet(_, _, _, False):
                found.update(_renamed(change) & {network.vni for network in owners.values()})
            case AddressGone(ifindex) | RouteChanged(ifindex):
                if (name := name_of(ifindex)) in owners:
                    found.add(owners[name].vni)
    return found


def _renamed(change: LinkSet) -> set[int]:
    """Returns the network whose uplink a link is, although it does not have the name of one."""
    if ALIAS_PREFIX.encode() not in change.body:
        return set()
    vni = network_of_uplink(parse_link(change.body))
    return set() if vni is None else {vni}
