"""Inspects one network of the node: bridge, ports, tunnels, entries and filter in the network's namespace.

What follows from another difference is left out: the entries of a link that does not exist or is down, and the elements
of a filter that is not whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from cni_contrail.datapath.bridge import BridgeInfo
from cni_contrail.datapath.desired import GATEWAY_MAC, Network, Underlay
from cni_contrail.datapath.entries import ON_LINK, Entries, entries_of
from cni_contrail.datapath.forwarding import forwarding_problem
from cni_contrail.datapath.missing_modules import open_filters
from cni_contrail.datapath.network_state import NetworkState, read_network
from cni_contrail.datapath.plan import Plan, plan
from cni_contrail.datapath.port_mtu import low_mtus
from cni_contrail.datapath.remote_entries import held_by, with_remotes
from cni_contrail.datapath.reserved_macs import mac_problem
from cni_contrail.datapath.tunnel_names import BRIDGED
from cni_contrail.datapath.tunnels import tunnels_of
from cni_contrail.inspection.difference import MISSING, WRONG, Difference, changed, missing, stale
from cni_contrail.inspection.port_inspection import host_end_mtus
from cni_contrail.inspection.tunnel_inspection import carrying, tunnel_differences
from cni_contrail.link.bridge_port import BRIDGE
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.netns import InNetns
from cni_contrail.link.plan import Address

FILTER = "anti-spoofing filter"


def inspect_network(netns: int, network: Network, underlay: Underlay, *, sysctl_dir: str) -> list[Difference]:
    """Returns what is wrong with the network in the namespace `netns`. Raises LinkError."""
    with InNetns(netns):
        kernel, filters = RouteSocket(), open_filters()
        has_ipv6 = any(":" in gateway.address for gateway in network.gateways)
        problem = forwarding_problem(ipv6=has_ipv6, sysctl_dir=sysctl_dir) if network.routes_between_pods else None
    with kernel, filters:
        state = read_network(kernel, filters)
        low = low_mtus(kernel, network.ports, state.links)
    settings = [] if problem is None else [Difference(network.vni, WRONG, "settings of the network namespace", problem)]
    return [*settings, *_differences(network, underlay, state), *host_end_mtus(network.vni, low)]


def _differences(network: Network, underlay: Underlay, state: NetworkState) -> Iterator[Difference]:
    vni = network.vni
    if not state.has_filter:
        yield Difference(vni, WRONG, FILTER, "missing, or its rules were changed")
    yield from stale(vni, (f"nf_tables table {each} of another program" for each in state.other_tables))
    bridge = _bridge_problem(state.bridge, network.mtu)
    if bridge is not None:
        yield bridge._replace(vni=vni)
    if state.bridge is None or not state.bridge.link.is_up:
        return
    for port in network.ports:
        if port.link not in state.indexes:
            yield Difference(vni, MISSING, f"host end {port.link}")
        elif problem := mac_problem(port.mac):
            yield Difference(vni, WRONG, f"host end {port.link}", problem)
        elif port.link in state.other_links:
            yield Difference(vni, WRONG, f"host end {port.link}", "down, or not a port of the bridge as it should be")
        elif port.link in state.blocked:
            yield Difference(vni, WRONG, f"host end {port.link}", "the bridge forwards none of its frames")
    tunnels = tunnels_of(network, underlay)
    found_tunnels = state.tunnels if network.is_complete else {k: v for k, v in state.tunnels.items() if k in tunnels}
    yield from tunnel_differences(vni, tunnels, found_tunnels, bridge=state.bridge_link.ifindex)
    silent = tunnels.keys() - carrying(tunnels, state.tunnels)
    yield from _entry_differences(network, underlay, state, frozenset(silent))


def _bridge_problem(bridge: BridgeInfo | None, mtu: int) -> Difference | None:
    if bridge is None:
        return Difference(0, MISSING, f"bridge {BRIDGE}")
    found = bridge.link
    problems = [] if found.is_up else ["down"]
    problems += [] if bridge.has_settings else ["ARP or multicast is off, or snooping or filtering for IP on"]
    problems += [f"MAC {found.mac}"] if found.mac != GATEWAY_MAC else []
    problems += [f"MTU {found.mtu}, not {mtu}"] if found.mtu != mtu else []
    return Difference(0, WRONG, f"bridge {BRIDGE}", ", ".join(problems)) if problems else None


def _entry_differences(
    network: Network, underlay: Underlay, state: NetworkState, silent: frozenset[str]
) -> Iterator[Difference]:
    vni = network.vni
    unknown = (state.ports | state.other_links) - {port.link for port in network.ports}
    desired = with_remotes(
        entries_of(network, frozenset(state.indexes)), network, underlay, held_by(unknown, state.entries)
    )
    left_alone = silent if network.is_complete else frozenset(BRIDGED)
    lost = frozenset(port.mac for port in network.ports if port.link not in state.indexes)
    found = state.entries
    difference = plan(desired, found, unknown=unknown | left_alone)
    yield from missing(vni, map(_gateway, difference.add_gateways))
    yield from stale(vni, map(_gateway, difference.remove_gateways))
    yield from changed(
        vni,
        {key: node for key, node in difference.set_destinations.items() if key.link not in silent},
        found.destinations,
        lambda key, node: f"entry of {key.link} for {key.mac}: to node {node}",
    )
    yield from changed(
        vni,
        {mac: link for mac, link in difference.set_forwarding.items() if link not in silent | state.other_links},
        found.forwarding,
        lambda mac, link: f"entry of the bridge for {mac}: by {link}",
    )
    yield from changed(vni, difference.set_neighbours, found.neighbours, "neighbour {}: {}".format)
    yield from changed(vni, difference.set_routes, found.routes, _route)
    yield from _stale_entries(vni, difference, found, lost)
    if state.has_filter:
        yield from missing(
            vni, (f"{FILTER}: {each.address} with {each.mac} from {each.link}" for each in difference.add_sources)
        )
        yield from stale(
            vni,
            (
                f"{FILTER}: {each.address} with {each.mac} from {each.link}"
                for each in difference.remove_sources
                if each.mac not in lost
            ),
        )


def _stale_entries(vni: int, difference: Plan, found: Entries, lost: frozenset[str]) -> Iterator[Difference]:
    """`lost` are MACs of ports whose host ends do not exist."""
    yield from stale(
        vni,
        (f"entry of {each.link} for {each.mac}: to node {found.destinations[each]}"
         for each in difference.remove_destinations),
    )  # fmt: skip
    yield from stale(
        vni,
        (f"entry of the bridge for {mac}: by {link}" for mac, link in difference.remove_forwarding.items()
         if mac not in lost),
    )  # fmt: skip
    yield from stale(
        vni,
        (f"neighbour {address}: {found.neighbours[address]}" for address in difference.remove_neighbours
         if found.neighbours[address] not in lost),
    )  # fmt: skip
    yield from stale(vni, (f"route to {cidr}" for cidr in difference.remove_routes))


def _route(cidr: str, gateway: str) -> str:
    return f"route to {cidr} on the link" if gateway == ON_LINK else f"route to {cidr} by {gateway}"


def _gateway(address: Address) -> str:
    return f"address {address.address}/{address.prefix_length} of the bridge"
