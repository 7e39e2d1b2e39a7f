"""Brings one network in the kernel to its desired state.

What is there and right is not touched, and what is removed goes last. The filter changes in one transaction, so no
packet passes an incomplete one, and a port is mute until its elements are there.
"""

from __future__ import annotations

from collections.abc import Iterator

from cni_contrail.datapath import bridge, filter_rules
from cni_contrail.datapath.desired import GATEWAY_MAC, UPLINK, Network
from cni_contrail.datapath.entries import Source, entries_of
from cni_contrail.datapath.filter_rules import Drops
from cni_contrail.datapath.missing_modules import open_filters
from cni_contrail.datapath.namespace_settings import configure_bridge, configure_namespace, disable_forwarding
from cni_contrail.datapath.network_state import NetworkState, index_of, read_network
from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.datapath.plan import Plan, plan
from cni_contrail.link.addresses import add_address, remove_address
from cni_contrail.link.bridge_port import BRIDGE
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkRef, set_up
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import InNetns

_LOOPBACK = LinkRef("lo", 1)


class Reconciled(NamedTuple):
    """Number of changes made in the kernel, and the links of desired ports that do not exist.

    `drops` were counted by the filter as it was found; one that was replaced counts from 0 again.
    `uplink` is the index of the link that has the name of an uplink (`uplinks`), None if there is none.
    """

    changes: int
    missing: frozenset[str]
    drops: Drops
    uplink: int | None


def reconcile_network(
    netns_fd: int, network: Network, *, sysctl_dir: str = "/proc/sys", removes: bool = True
) -> Reconciled:
    """Brings the network in the namespace `netns_fd` to its desired state.

    Without `removes` it only adds what is missing: the caller knows a part of the desired state. The caller holds the
    network's lock (`network_lock`). An uplink stays as it is.

    Raises KernelError, NetnsError or SysctlError, each a LinkError; the next call continues where this one ended.
    """
    with InNetns(netns_fd):
        configure_namespace(sysctl_dir)
        kernel, filters = RouteSocket(), open_filters()
    with kernel, filters:
        state = read_network(kernel, filters)
        if UPLINK not in state.indexes:
            with InNetns(netns_fd):
                disable_forwarding(sysctl_dir)
        changes = _prepare(kernel, state, network)
        if changes:
            with InNetns(netns_fd):
                configure_bridge(sysctl_dir)
            state = read_network(kernel, filters)  # the kernel drops entries of links that change
        wanted = {port.link for port in network.ports}
        difference = plan(
            entries_of(network, frozenset(state.indexes)),
            state.entries,
            unknown=(state.ports | state.other_links) - wanted,
        )
        if not removes:
            difference = difference.without_removals()
        changes += _apply(kernel, filters, state, difference)
        missing = frozenset(wanted - state.indexes.keys())
        return Reconciled(changes, missing, state.drops, state.indexes.get(UPLINK))


def _prepare(kernel: RouteSocket, state: NetworkState, network: Network) -> int:
    """Creates or corrects the bridge and attaches ports to it; returns the number of changes."""
    wanted = {port.link for port in network.ports}
    requests = [*_set_bridge(state, network), *_attach(state, wanted)]
    kernel.execute_all(requests)
    return len(requests)


def _apply(kernel: RouteSocket, filters: NftablesSocket, state: NetworkState, difference: Plan) -> int:
    """Changes filter and tables; returns the number of changes."""
    filters.commit(list(_filter_requests(state, difference)))
    requests = list(_table_requests(difference, state.indexes))
    kernel.execute_all(requests)
    elements = len(difference.add_sources) + len(difference.remove_sources)
    return elements + len(requests) + (0 if state.has_filter else 1)


def _set_bridge(state: NetworkState, network: Network) -> Iterator[NetlinkRequest]:
    found = state.bridge
    if found is None:
        yield set_up(_LOOPBACK)
        yield bridge.create_bridge(network.mtu)
    elif (found.mac, found.mtu, found.is_up) != (GATEWAY_MAC, network.mtu, True):
        yield bridge.set_bridge(found, network.mtu)


def _attach(state: NetworkState, wanted: set[str]) -> Iterator[NetlinkRequest]:
    for name in sorted(wanted & state.other_links):
        port = LinkRef(name, state.indexes[name])
        yield bridge.set_port(port)
        yield bridge.set_port_flags(port)


def _filter_requests(state: NetworkState, difference: Plan) -> Iterator[NetlinkRequest]:
    if state.has_filter:
        add, remove = difference.add_sources, difference.remove_sources
    else:
        yield from filter_rules.replace_filter()
        add, remove = difference.add_sources | (state.entries.sources - difference.remove_sources), frozenset[Source]()
    yield from filter_rules.change_elements(
        [filter_rules.element(each, index_of(each.link, state.indexes)) for each in sorted(add)],
        [filter_rules.element(each, index_of(each.link, state.indexes)) for each in sorted(remove)],
    )


def _table_requests(difference: Plan, indexes: dict[str, int]) -> Iterator[NetlinkRequest]:
    for address in sorted(difference.add_gateways):
        yield add_address(BRIDGE, address)
    for mac, link in difference.set_forwarding.items():
        yield bridge.set_forwarding(mac, LinkRef(link, indexes[link]))
    for neighbour, mac in difference.set_neighbours.items():
        yield bridge.set_neighbour(neighbour, mac)
    for neighbour in sorted(difference.remove_neighbours):
        yield bridge.remove_neighbour(neighbour)
    for mac, link in difference.remove_forwarding.items():
        yield bridge.remove_forwarding(mac, LinkRef(link, indexes[link]))
    for address in sorted(difference.remove_gateways):
        yield remove_address(BRIDGE, address)
