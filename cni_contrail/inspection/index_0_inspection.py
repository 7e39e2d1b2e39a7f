"""Inspects index 0 in the node's namespace: routed ports with their filter, and the ways to blocks of other nodes."""

from __future__ import annotations

from collections.abc import Iterator

from cni_contrail.datapath import block_entries, routed_plan
from cni_contrail.datapath.block_entries import UNREACHABLE, Way
from cni_contrail.datapath.block_state import read_blocks
from cni_contrail.datapath.desired import Routed, RoutedNetwork, Underlay
from cni_contrail.datapath.forwarding import arp_problem, forwarding_problem
from cni_contrail.datapath.missing_modules import open_filters
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.port_mtu import low_mtus
from cni_contrail.datapath.routed_blocks import tunnels_of
from cni_contrail.datapath.routed_entries import RoutedEntries, entries_of, has_ipv6, normalised
from cni_contrail.datapath.routed_state import RoutedState, read_routed
from cni_contrail.inspection.difference import WRONG, Difference, changed, missing, stale
from cni_contrail.inspection.port_inspection import host_end_mtus
from cni_contrail.inspection.tunnel_inspection import carrying, tunnel_differences
from cni_contrail.link.exchange import RouteSocket

FILTER = "filter of index 0"


def inspect_ports(routed: Routed, *, sysctl_dir: str) -> list[Difference]:
    """Returns what is wrong with the routed ports; the calling thread is in the node's namespace. Raises LinkError."""
    wanted = frozenset(port.link for port in routed.ports)
    with RouteSocket() as kernel, open_filters() as filters:
        state = read_routed(kernel, filters, wanted)
        low = low_mtus(kernel, routed.ports, state.links)
    if not wanted:
        is_used = bool(state.entries.ports & state.host_ends)  # by ports that keep what they have
        return [] if is_used or state.filter.table is None else list(stale(INDEX_0, [FILTER]))
    is_ipv6 = any(has_ipv6(port) for port in routed.ports)
    no_forwarding = forwarding_problem(ipv6=is_ipv6, sysctl_dir=sysctl_dir)
    problems = [each for each in (no_forwarding, arp_problem(sysctl_dir)) if each is not None]
    settings = [Difference(INDEX_0, WRONG, "settings of the node", each) for each in problems]
    differences = _port_differences(routed, state, forwards=no_forwarding is None)
    return [*settings, *differences, *host_end_mtus(INDEX_0, low)]


def _port_differences(routed: Routed, state: RoutedState, *, forwards: bool) -> Iterator[Difference]:
    ports = tuple(normalised(port) for port in routed.ports)
    wanted = frozenset(port.link for port in ports)
    lost = wanted - state.indexes.keys()
    yield from missing(INDEX_0, (f"host end {link}" for link in lost))
    desired, refused = entries_of(ports, frozenset(state.indexes), state.taken)
    for link, address in sorted(refused):
        yield Difference(INDEX_0, WRONG, f"route to {address} by {link}", "it belongs to another port or program")
    unknown = (state.entries.ports & state.host_ends) - wanted
    difference = routed_plan.plan(desired, state.entries, unknown=unknown | state.tunnels)
    yield from _setting_differences(difference, state.entries, forwards=forwards)
    yield from _link_differences(desired, state.entries, difference)
    addresses_of_lost = {address for port in ports if port.link in lost for address in port.addresses}
    stale_neighbours = (each for each in difference.remove_neighbours if each.address not in addresses_of_lost)
    yield from stale(INDEX_0, (f"neighbour {each.address} by {each.link}" for each in stale_neighbours))
    if not state.filter.is_whole(routed.masquerade):
        yield Difference(INDEX_0, WRONG, FILTER, "missing, or its rules were changed")
        return
    yield from missing(INDEX_0, (f"{FILTER}: host end {link}" for link in difference.add_ports))
    yield from missing(INDEX_0, (f"{FILTER}: {each.address} from {each.link}" for each in difference.add_sources))
    yield from missing(INDEX_0, (f"{FILTER}: network {network}" for network in difference.add_networks))
    # A link that was deleted leaves elements, which are known by its index alone: they follow from its loss.
    known = [each for each in difference.remove_sources if not each.link.startswith("#")]
    yield from stale(INDEX_0, (f"{FILTER}: {each.address} from {each.link}" for each in known))


def _setting_differences(
    difference: routed_plan.RoutedPlan, found: RoutedEntries, *, forwards: bool
) -> Iterator[Difference]:
    """Leaves out that a link does not forward if the node does not: the kernel changes both together."""
    for link, wanted in difference.set_links.items():
        actual = found.settings[link] if forwards else found.settings[link]._replace(forwarding=wanted.forwarding)
        pairs = zip(wanted._fields, wanted, actual, strict=True)
        wrong = ", ".join(f"{name} is {value}, not {wish}" for name, wish, value in pairs if value != wish)
        if wrong:
            yield Difference(INDEX_0, WRONG, f"settings of host end {link}", wrong)


def _link_differences(
    desired: RoutedEntries, found: RoutedEntries, difference: routed_plan.RoutedPlan
) -> Iterator[Difference]:
    yield from missing(INDEX_0, (f"gateway {each.address} on {each.link}" for each in difference.add_gateways))
    yield from stale(INDEX_0, (f"gateway {each.address} on {each.link}" for each in difference.remove_gateways))
    # Not those of the plan: it sets all neighbours of a link whose settings it changes.
    yield from changed(
        INDEX_0, desired.neighbours, found.neighbours, lambda key, mac: f"neighbour {key.address} by {key.link}: {mac}"
    )
    yield from changed(INDEX_0, desired.routes, found.routes, "route to {} by {}".format)
    yield from stale(INDEX_0, (f"route to {each.address} by {each.link}" for each in difference.remove_routes))


def inspect_blocks(network: RoutedNetwork | None, underlay: Underlay) -> list[Difference]:
    """Returns what is wrong with the ways to other nodes; the calling thread is in the node's namespace.

    Raises LinkError.
    """
    with RouteSocket() as kernel:
        state = read_blocks(kernel)
    if network is None or not underlay.addresses:
        return list(stale(INDEX_0, (f"tunnel {name}" for name in state.tunnels))) if network is None else []
    wanted = tunnels_of(network, underlay)
    found = state.tunnels if network.is_complete else {k: v for k, v in state.tunnels.items() if k in wanted}
    differences = list(tunnel_differences(INDEX_0, wanted, found))
    up = carrying(wanted, state.tunnels)
    desired = block_entries.entries_of(network, underlay, state.hosts)
    whole = block_entries.plan(desired, state.entries)
    difference = whole if network.is_complete else whole.without_removals()
    differences += missing(
        INDEX_0, (f"address {each.address} of {each.link}" for each in difference.add_addresses if each.link in up)
    )
    differences += changed(
        INDEX_0,
        {key: node for key, node in difference.set_destinations.items() if key.link in up},
        state.entries.destinations,
        lambda key, node: f"entry of {key.link} for {key.mac}: to node {node}",
    )
    differences += changed(
        INDEX_0,
        {key: mac for key, mac in difference.set_neighbours.items() if key.link in up},
        state.entries.neighbours,
        lambda key, mac: f"neighbour {key.address} by {key.link}: {mac}",
    )
    differences += changed(
        INDEX_0,
        {cidr: way for cidr, way in difference.set_ways.items() if way == UNREACHABLE or way.link in up},
        state.entries.ways,
        _way,
    )
    differences += _stale(difference, frozenset(wanted))
    return differences


def _stale(difference: block_entries.BlockPlan, tunnels: frozenset[str]) -> Iterator[Difference]:
    """Leaves out what belongs to a stale tunnel."""
    yield from stale(
        INDEX_0,
        (_way(cidr, way) for cidr, way in difference.remove_ways.items() if way == UNREACHABLE or way.link in tunnels),
    )
    neighbours = (each for each in difference.remove_neighbours if each.link in tunnels)
    yield from stale(INDEX_0, (f"neighbour {each.address} by {each.link}" for each in neighbours))
    destinations = (each for each in difference.remove_destinations if each.link in tunnels)
    yield from stale(INDEX_0, (f"entry of {each.link} for {each.mac}" for each in destinations))
    addresses = (each for each in difference.remove_addresses if each.link in tunnels)
    yield from stale(INDEX_0, (f"address {each.address} of {each.link}" for each in addresses))


def _way(cidr: str, way: Way) -> str:
    if way == UNREACHABLE:
        return f"route to {cidr}: unreachable"
    source = f" from {way.source}" if way.source else ""
    return f"route to {cidr} by {way.gateway} on {way.link}{source}"
