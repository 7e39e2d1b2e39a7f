"""Brings one network in the kernel to its desired state.

What is there and right is not touched, and what is removed goes last. The filter changes in one transaction, so no
packet passes an incomplete one, and a port is mute until its elements are there. A tunnel is down until it has its
entries.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping

from cni_contrail.datapath.bridge_ports import unblock_port
from cni_contrail.datapath.desired import UPLINK, Network, Underlay
from cni_contrail.datapath.entries import Entries, entries_of
from cni_contrail.datapath.filter_rules import MODULES, Drops, forget_ports
from cni_contrail.datapath.missing_modules import commit, explained, open_filters
from cni_contrail.datapath.namespace_settings import (
    configure_bridge,
    configure_namespace,
    disable_forwarding,
    forward_between_pods,
)
from cni_contrail.datapath.network_requests import (
    filter_requests,
    link_requests,
    routing_requests,
    table_requests,
)
from cni_contrail.datapath.network_state import NetworkState, read_network
from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.datapath.nftables_tables import remove_tables
from cni_contrail.datapath.plan import Plan, plan
from cni_contrail.datapath.port_mtu import low_mtus, raise_mtu
from cni_contrail.datapath.remote_entries import held_by, no_address_for, with_remotes
from cni_contrail.datapath.reserved_macs import refused_macs
from cni_contrail.datapath.too_large import count_too_large
from cni_contrail.datapath.tunnel_messages import Tunnel
from cni_contrail.datapath.tunnel_names import BRIDGED
from cni_contrail.datapath.tunnel_plan import TunnelPlan, plan_tunnels
from cni_contrail.datapath.tunnels import make_tunnels, tunnels_of
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkRef, identities_of
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import InNetns

_LOOPBACK = LinkRef("lo", 1)


class Reconciled(NamedTuple):
    """Number of changes made in the kernel, and the links of desired ports that do not exist.

    `links` are index and alias of each link that may be a pod's.
    `drops` were counted by the filter as it was found; one that was replaced counts from 0 again.
    `removed_tables` of nf_tables were other programs': nobody else filters in a network's namespace.
    `uplink` is the index of the link that has the name of an uplink (`uplinks`), None if there is none. `problem` is
    what prevents traffic. Without `has_tunnels` nothing leads to other nodes, since that failed. `has_stale`: something
    that leads to other nodes is to be removed later.
    `generation` is the newest one of the namespace's rules that was read or made.
    """

    changes: int
    missing: frozenset[str]
    links: frozenset[tuple[int, str]]
    drops: Drops
    removed_tables: tuple[str, ...]
    uplink: int | None
    problem: str | None
    has_tunnels: bool
    has_stale: bool
    generation: int


def reconcile_network(
    netns_fd: int,
    network: Network,
    underlay: Underlay | None = None,
    *,
    sysctl_dir: str = "/proc/sys",
    removes: bool = True,
    removes_remotes: bool = True,
) -> Reconciled:
    """Brings the network in the namespace `netns_fd` to its desired state.

    Without `removes` it only adds what is missing: the caller knows a part of the desired state. What leads to other
    nodes stays without `removes_remotes`, and stays as it is without an `underlay`. So does an uplink. The caller holds
    the network's lock (`network_lock`), and is in the node's namespace.

    Raises KernelError, NetnsError or SysctlError, each a LinkError; the next call continues where this one ended.
    """
    removes_remotes = removes and removes_remotes and underlay is not None
    with InNetns(netns_fd):
        written = configure_namespace(sysctl_dir)
        kernel, filters, too_large = RouteSocket(), open_filters(), count_too_large()
    with kernel, filters:
        wanted = {} if underlay is None else tunnels_of(network, underlay)
        generation = filters.generation()
        state, changes, problem = _prepare(kernel, filters, netns_fd, network, wanted, sysctl_dir)
        changes += written
        if problem is not None:
            underlay, wanted, removes_remotes = None, {}, False
        removed, foreign = remove_tables(filters, state.other_tables) if removes else ([], None)
        changes += _clear_routing(kernel, state, network) if removes else 0
        unknown = (state.ports | state.other_links) - {port.link for port in network.ports}
        desired = entries_of(network, frozenset(state.indexes))
        if underlay is not None:
            desired = with_remotes(desired, network, underlay, held_by(unknown, state.entries))
        left_alone = frozenset[str]() if removes_remotes else frozenset(BRIDGED)
        difference = plan(desired, state.entries, unknown=unknown | left_alone)
        changes += _apply(kernel, filters, state, difference if removes else difference.without_removals())
        changes += len(removed)
        if removes and state.has_filter:
            filters.commit(forget_ports(state.gone))
        changes += _finish_tunnels(
            kernel, plan_tunnels(wanted, state.tunnels, state.bridge_link), removes=removes_remotes
        )
        generation = filters.known_generation(generation, commits=0)
    unreachable = problem if underlay is None else no_address_for(network.nodes(), underlay)
    return Reconciled(
        changes,
        missing=frozenset({port.link for port in network.ports} - state.indexes.keys()),
        links=identities_of(state.links, state.ports | state.other_links - {UPLINK}),
        drops=state.drops._replace(mtu=too_large),
        removed_tables=tuple(map(str, removed)),
        uplink=state.indexes.get(UPLINK),
        problem="; ".join(each for each in (foreign, refused_macs(network), unreachable) if each) or None,
        has_tunnels=problem is None,
        has_stale=not removes_remotes and _has_stale(state, desired, wanted),
        generation=generation,
    )


def _prepare(
    kernel: RouteSocket,
    filters: NftablesSocket,
    netns: int,
    network: Network,
    tunnels: Mapping[str, Tunnel],
    sysctl_dir: str,
) -> tuple[NetworkState, int, str | None]:
    """Creates or corrects the bridge, its ports and its tunnels.

    Returns the state then, the number of changes, and what prevents tunnels: pods of this node do without.
    """
    state = read_network(kernel, filters)
    changes, problem = 0, None
    if UPLINK not in state.indexes and not network.routes_between_pods:
        with InNetns(netns):
            changes += disable_forwarding(sysctl_dir)
    requests = list(link_requests(state, network))
    requests += map(raise_mtu, low_mtus(kernel, network.ports, state.links))
    kernel.execute_all(requests)
    requests += _unblock(kernel, state, {port.link for port in network.ports})
    changes += len(requests)
    try:
        changes += make_tunnels(kernel, netns, tunnels, state.tunnels, state.bridge_link, is_new=state.bridge is None)
    except KernelError as error:
        problem = str(explained(error))
    with InNetns(netns):
        changes += forward_between_pods(sysctl_dir) if network.routes_between_pods else 0
        changes += configure_bridge(sysctl_dir, mtu=network.mtu)
    if not changes and problem is None:
        return state, 0, None
    return read_network(kernel, filters), changes, problem  # the kernel drops entries of links that change


def _clear_routing(kernel: RouteSocket, state: NetworkState, network: Network) -> int:
    """Removes what other programs have put before the network's routes; returns the number of changes."""
    requests = list(routing_requests(state, network))
    for error in kernel.execute(requests).values():
        if error.errno not in (errno.ENOENT, errno.ESRCH):  # removed by the other program itself
            raise error
    return len(requests)


def _finish_tunnels(kernel: RouteSocket, tunnels: TunnelPlan, *, removes: bool) -> int:
    """Sets up tunnels, whose entries are there now, and removes those to which nothing leads any more."""
    kernel.execute_all(tunnels.set_up)
    removed = tunnels.remove if removes else ()
    kernel.execute_all(removed)
    return len(tunnels.set_up) + len(removed)


def _has_stale(state: NetworkState, desired: Entries, tunnels: Mapping[str, Tunnel]) -> bool:
    found = state.entries
    return bool(
        state.tunnels.keys() - tunnels.keys()
        or found.destinations.keys() - desired.destinations.keys()
        or found.routes.keys() - desired.routes.keys()
    )


def _apply(kernel: RouteSocket, filters: NftablesSocket, state: NetworkState, difference: Plan) -> int:
    """Changes filter and tables; returns the number of changes."""
    commit(filters, list(filter_requests(state, difference)), MODULES)
    requests = list(table_requests(difference, state))
    kernel.execute_all(requests)
    elements = len(difference.add_sources) + len(difference.remove_sources)
    return elements + len(requests) + (0 if state.has_filter else 1)


def _unblock(kernel: RouteSocket, state: NetworkState, wanted: set[str]) -> list[NetlinkRequest]:
    """Lets blocked ports forward frames, but those that have lost their carrier since; returns what was requested."""
    requests = [unblock_port(LinkRef(name, state.indexes[name])) for name in sorted(wanted & state.blocked)]
    for error in kernel.execute(requests).values():
        if error.errno != errno.ENETDOWN:
            raise error
    return requests
