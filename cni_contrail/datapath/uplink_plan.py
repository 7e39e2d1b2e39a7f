"""What is to be done with the uplink of a network, in which order. Pure: no kernel.

What is right is not touched, and what differs is set in place. What is new comes before what is removed. Rules come
before the links that they restrict, and addresses before routes by them. The network forwards packets, and the node
has routes to it, only when both ends are ready; both end before anything else goes. Ends that do not belong together
are replaced: there is nothing that could stay.

The kernel removes addresses and routes of links that change. So there are three plans, for the pair of links, for their
settings, and for their addresses and routes, each for what is found after the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cni_contrail.datapath import uplink_rules
from cni_contrail.datapath.forwarding import plan_forwarding
from cni_contrail.datapath.kernel_settings import differing
from cni_contrail.datapath.namespace_settings import NO_FORWARDING
from cni_contrail.datapath.nftables_messages import delete_table
from cni_contrail.datapath.nftables_tables import TableState
from cni_contrail.datapath.routed_messages import desired_settings, set_host_end
from cni_contrail.datapath.rule_texts import RuleText
from cni_contrail.datapath.uplink_addresses import Pair
from cni_contrail.datapath.uplink_messages import (
    UplinkRoute,
    add_route,
    create_uplink,
    remove_route,
    set_alias,
    set_mtu,
    set_route,
)
from cni_contrail.datapath.uplink_operations import NETWORK, NODE, Operation, Removal, Requests, Rules, Settings
from cni_contrail.datapath.uplink_rules import alias_of, node_link
from cni_contrail.datapath.uplink_state import EndState
from cni_contrail.link import links
from cni_contrail.link.addresses import add_address, remove_address
from cni_contrail.link.errors import LinkError
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address

SOLICITOR = Address("fe80::1", 64)
"""Sender of the node's neighbour solicitations: for packets that it forwards, the kernel uses no other address."""

_EVERYTHING = {4: "0.0.0.0/0", 6: "::/0"}


class DesiredUplink(NamedTuple):
    """What an uplink should be. `versions` are those of IP, `subnets` (CIDRs) have routes on the node.

    `rules` are those of the network's table, `netns` is the descriptor of its namespace.
    """

    vni: int
    netns: int
    mtu: int
    versions: tuple[int, ...]
    subnets: tuple[str, ...]
    rules: Sequence[RuleText]


class UplinkState(NamedTuple):
    """An uplink as it was found; `is_pair`: both ends exist, and belong together.

    Of the network also its table, and its settings of forwarding (`plan_forwarding`).
    """

    node: EndState | None
    network: EndState | None
    is_pair: bool
    table: TableState | None
    forwarding: Mapping[str, str]


def plan_pair(desired: DesiredUplink, found: UplinkState) -> list[Operation]:
    """Returns the operations after which there are rules, and both ends by their names.

    Raises LinkError if a link of another program has the name of the uplink.
    """
    operations: list[Operation] = []
    if found.table is None or not found.table.is_whole(uplink_rules.NETWORK_CHAINS, desired.rules):
        operations.append(Rules(uplink_rules.replace_network_table(desired.rules)))
    return operations + _replacement(desired, found)


def plan_links(desired: DesiredUplink, node: EndState, network: EndState) -> list[Operation]:
    """Returns the operations that bring the settings of both links to the desired ones."""
    ipv6 = 6 in desired.versions
    # First the MTU: with less than 1280 bytes a link has no IPv6, nor settings of it.
    operations: list[Operation] = [
        Requests(place, (set_mtu(end.ref, desired.mtu),))
        for place, end in ((NODE, node), (NETWORK, network))
        if end.link.mtu != desired.mtu
    ]
    settings = node.settings if ipv6 else node.settings._replace(accept_ra=0)
    if settings != desired_settings(ipv6=ipv6):
        operations += _ipv6_settings(NODE, node, ipv6=ipv6)
        operations.append(Requests(NODE, (set_host_end(node.ref, node.link.mac, ipv6=ipv6),)))
    if node.link.alias != alias_of(desired.vni):
        operations.append(Requests(NODE, (set_alias(node.ref, desired.vni),)))
    operations += _ipv6_settings(NETWORK, network, ipv6=ipv6)
    if not network.link.is_up:
        operations.append(Requests(NETWORK, (links.set_up(network.ref),)))
    return operations


def plan_entries(
    desired: DesiredUplink, node: EndState, network: EndState, forwarding: Mapping[str, str], pair: Pair
) -> list[Operation]:
    """Returns the operations that bring addresses, routes and forwarding to the desired state.

    In the network, which is its own, routes of others are replaced. On the node, a route that another program has added
    to one of the subnets makes the operation fail.
    """
    gateways = {version: pair.network(version).address for version in desired.versions}
    outer = {UplinkRoute(each, gateways[_version(each)]) for each in desired.subnets if _version(each) in gateways}
    outer_addresses = {pair.node(version) for version in desired.versions}
    outer_addresses |= {SOLICITOR} if 6 in desired.versions else set()
    inner = {UplinkRoute(_EVERYTHING[version], pair.node(version).address) for version in desired.versions}
    inner_addresses = {pair.network(version) for version in desired.versions}
    inner_addresses |= {each for each in network.addresses if each.address.startswith("fe80:")}  # the kernel's own
    operations: list[Operation] = [
        Requests(NETWORK, _new_addresses(network, inner_addresses)),
        Requests(NETWORK, tuple(set_route(network.ref, route) for route in sorted(inner - network.routes))),
        Requests(NODE, _new_addresses(node, outer_addresses)),
        Settings(NETWORK, plan_forwarding(forwarding, ipv6=6 in desired.versions)),
        Requests(NODE, _new_routes(node, outer)),
        Requests(NODE, (*_stale_routes(node, outer), *_stale_addresses(node, outer_addresses))),
        Requests(NETWORK, (*_stale_routes(network, inner), *_stale_addresses(network, inner_addresses))),
    ]
    return [each for each in operations if each.changes()]


def plan_removal(found: UplinkState, *, forwards: bool) -> list[Operation]:
    """Returns the operations that remove an uplink; `forwards`: the network goes on to forward between its pods."""
    known = {key: value for key, value in NO_FORWARDING.items() if key in found.forwarding}
    closing = {} if forwards else differing(known, found.forwarding)
    operations: list[Operation] = [Settings(NETWORK, closing)] if closing else []
    operations += _removals(found)
    if found.table is not None:
        operations.append(Rules([delete_table(uplink_rules.TABLE)]))
    return operations


def _replacement(desired: DesiredUplink, found: UplinkState) -> list[Operation]:
    name = node_link(desired.vni)
    if found.node is not None and found.node.link.kind != "veth":
        raise LinkError(f"link {name} belongs to another program")
    if found.is_pair and found.node is not None and found.node.link.name == name:
        return []
    create = create_uplink(desired.vni, desired.mtu, desired.netns)
    return [*_removals(found), Requests(NODE, (create,))]


def _removals(found: UplinkState) -> list[Operation]:
    ends: list[Operation] = []
    if found.node is not None and found.node.link.kind == "veth":
        ends.append(Removal(NODE, links.delete(found.node.ref)))
    if found.network is not None and not found.is_pair:
        ends.append(Removal(NETWORK, links.delete(found.network.ref)))
    return ends


def _ipv6_settings(place: str, end: EndState, *, ipv6: bool) -> list[Operation]:
    """Returns what makes a link have IPv6 and ignore router advertisements, or have no IPv6."""
    folder = f"ipv6/conf/{end.link.name}"
    if ipv6 and (end.settings.accept_ra, end.settings.ipv6) != (0, True):
        return [Settings(place, {f"{folder}/accept_ra": "0", f"{folder}/disable_ipv6": "0"})]
    if not ipv6 and end.settings.ipv6:
        return [Settings(place, {f"{folder}/disable_ipv6": "1"})]
    return []


def _new_addresses(end: EndState, wanted: set[Address]) -> tuple[NetlinkRequest, ...]:
    """Adds addresses; one of IPv6, which a link has only once, takes the place of the same with another prefix."""
    added = sorted(wanted - end.addresses)
    in_place_of = sorted(_exchanged(end, wanted))
    return (*(remove_address(end.ref, each) for each in in_place_of), *(add_address(end.ref, each) for each in added))


def _stale_addresses(end: EndState, wanted: set[Address]) -> tuple[NetlinkRequest, ...]:
    return tuple(remove_address(end.ref, each) for each in sorted(end.addresses - wanted - _exchanged(end, wanted)))


def _exchanged(end: EndState, wanted: set[Address]) -> set[Address]:
    texts = {each.address for each in wanted - end.addresses if ":" in each.address}
    return {each for each in end.addresses - wanted if each.address in texts}


def _new_routes(end: EndState, wanted: set[UplinkRoute]) -> tuple[NetlinkRequest, ...]:
    known = {route.destination for route in end.routes}
    return tuple(
        (set_route if route.destination in known else add_route)(end.ref, route)
        for route in sorted(wanted - end.routes)
    )


def _stale_routes(end: EndState, wanted: set[UplinkRoute]) -> tuple[NetlinkRequest, ...]:
    destinations = {route.destination for route in wanted}
    return tuple(remove_route(end.ref, each) for each in sorted(end.routes) if each.destination not in destinations)


def _version(subnet: str) -> int:
    return 6 if ":" in subnet else 4
