"""Brings the node's routed ports in the kernel to their desired state: index 0 of all pods (see `routed_port`).

What is there and right is not touched, what moves is replaced in place, what is stale goes last. With the last port the
table goes.

Links, addresses, routes and tables of other programs stay. Ours are the table `contrail`, routes of our protocol number
by our ports, and what our ports have. A port of the filter that is not desired keeps what it has as long as its link
exists; the link takes its routes and neighbours with it.

Forwarding stays enabled when the last port goes: other programs of the node may rely on it.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from cni_contrail.datapath import routed_messages as messages
from cni_contrail.datapath import routed_rules
from cni_contrail.datapath.desired import Routed, RoutedPort
from cni_contrail.datapath.diverted_addresses import diverted_addresses
from cni_contrail.datapath.filter_rules import Drops
from cni_contrail.datapath.forwarding import arp_problem, disable_ipv6, enable_forwarding, enable_ipv6
from cni_contrail.datapath.missing_modules import commit, open_filters
from cni_contrail.datapath.nftables_messages import delete_table
from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.datapath.port_mtu import low_mtus, raise_mtu
from cni_contrail.datapath.routed_entries import LinkAddress, RoutedEntries, entries_of, has_ipv6, normalised
from cni_contrail.datapath.routed_plan import RoutedPlan, plan
from cni_contrail.datapath.routed_requests import port_requests
from cni_contrail.datapath.routed_state import RoutedState, is_host_end, read_routed
from cni_contrail.link import links
from cni_contrail.link.errors import KernelError, LinkError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.named_tuple import NamedTuple

_NOTHING = RoutedEntries(frozenset(), frozenset(), {}, frozenset(), {}, {})
_ATTEMPTS = 10
_GONE = (errno.ENODEV, errno.ENOENT, errno.ESRCH, errno.EADDRNOTAVAIL)


class RoutedOutcome(NamedTuple):
    """Number of changes made in the kernel; links of desired ports that do not exist; by link, what prevents the rest.

    `links` are index and alias of each host end, and of each other link that has the name of a desired port.
    The removal of the table with the last port is no change: an audit, which may be what removes it, repairs nothing.
    `node_problem` concerns all ports. `drops` are counted since the filter was made. `generation` is the newest one of
    the namespace's rules that was read or made.
    """

    changes: int
    missing: frozenset[str]
    links: frozenset[tuple[int, str]]
    problems: dict[str, str]
    node_problem: str | None
    drops: Drops
    generation: int


def reconcile_routed(routed: Routed, *, sysctl_dir: str = "/proc/sys") -> RoutedOutcome:
    """Brings the ports to their desired state, in the calling thread's network namespace.

    What concerns one port is in the outcome. Raises KernelError, SysctlError or MissingModuleError, each a LinkError;
    the next call continues where this one ended.
    """
    with RouteSocket() as kernel, open_filters() as filters:
        for _ in range(_ATTEMPTS):
            try:
                return _reconcile(kernel, filters, routed, sysctl_dir)
            except KernelError as error:
                if error.errno != errno.ERESTART:
                    raise
        raise LinkError(f"table {routed_rules.TABLE.name}: other rules changed during each of {_ATTEMPTS} attempts")


def _reconcile(kernel: RouteSocket, filters: NftablesSocket, routed: Routed, sysctl_dir: str) -> RoutedOutcome:
    wanted = frozenset(port.link for port in routed.ports)
    commits = filters.commits
    state = read_routed(kernel, filters, wanted)
    raised = _raise_mtus(kernel, state, routed)
    if raised:  # with less than 1280 bytes a link has no IPv6, so it gets what it has lost in the same round
        state = read_routed(kernel, filters, wanted)
    unknown = (state.entries.ports & state.host_ends) - wanted
    if not wanted and not unknown:
        _remove_table(filters, state)
        generation = filters.known_generation(state.filter.generation, commits)
        return RoutedOutcome(0, frozenset(), frozenset(), {}, None, state.drops(), generation)
    ports, problems = _valid(routed.ports)
    changes = raised + enable_forwarding(ipv6=any(has_ipv6(port) for port in ports), sysctl_dir=sysctl_dir)
    existing = frozenset(state.indexes)
    desired, refused = entries_of(ports, existing, state.taken)
    problems.update((link, f"address {each} belongs to another port or program") for link, each in sorted(refused))
    difference = plan(desired, state.entries, unknown=unknown | state.tunnels)
    changes += _apply_filter(filters, state, difference, routed)
    _set_ipv6(difference, problems, sysctl_dir)
    _apply_tables(kernel, state, difference, problems)
    _remove_elements(filters, state, difference)
    for address in diverted_addresses(kernel, {each: state.indexes[link] for each, link in desired.routes.items()}):
        problems.setdefault(desired.routes[address], f"a policy rule of the node keeps packets from address {address}")
    changes += difference.changes()
    generation = filters.known_generation(state.filter.generation, commits)
    problem = arp_problem(sysctl_dir)
    found = links.identities_of(state.links, state.host_ends | wanted & existing)
    return RoutedOutcome(changes, wanted - existing, found, problems, problem, state.drops(), generation)


def _raise_mtus(kernel: RouteSocket, state: RoutedState, routed: Routed) -> int:
    """Returns the number of host ends that had too low an MTU."""
    requests = [raise_mtu(low) for low in low_mtus(kernel, routed.ports, state.links)]
    _raise_first(kernel.execute(requests))
    return len(requests)


def _valid(ports: tuple[RoutedPort, ...]) -> tuple[tuple[RoutedPort, ...], dict[str, str]]:
    """Returns the ports that can be encoded, and what is wrong with the others."""
    valid, problems = [], {}
    for port in ports:
        try:
            valid.append(normalised(port))
        except ValueError as error:
            problems[port.link] = str(error)
    return tuple(valid), problems


class PurgedRouted(NamedTuple):
    """Ports that were found, whether there was a table, and whether both were kept because of the ports."""

    ports: tuple[str, ...]
    had_table: bool
    is_kept: bool


def purge_routed(*, with_ports: bool, sysctl_dir: str = "/proc/sys") -> PurgedRouted:
    """Removes all that this module has made in the calling thread's network namespace; nothing if there are ports.

    With `with_ports` it disconnects them. Host ends stay, isolated as the plugin created them; forwarding stays
    enabled. Raises LinkError.
    """
    with RouteSocket() as kernel, open_filters() as filters:
        state = read_routed(kernel, filters, _host_ends_with_routes(kernel))
        ports, had_table = tuple(sorted(state.entries.settings)), state.filter.table is not None
        if ports and not with_ports:
            return PurgedRouted(ports, had_table, is_kept=True)
        problems: dict[str, str] = {}
        _raise_first(kernel.execute([messages.isolate_host_end(state.port(link)) for link in ports]))
        _apply_tables(kernel, state, plan(_NOTHING, state.entries), problems)
        for link in ports:
            disable_ipv6(link, sysctl_dir=sysctl_dir)
        if problems:
            raise LinkError("; ".join(problems.values()))
        if had_table:
            filters.commit([delete_table(routed_rules.TABLE)])
        return PurgedRouted(ports, had_table, is_kept=False)


def _host_ends_with_routes(kernel: RouteSocket) -> frozenset[str]:
    """Returns the host ends that have routes of ours: the filter, which knows the ports, may have been flushed."""
    routes = [messages.parse_host_route(body) for body in kernel.dump(messages.dump_routes())]
    indexes = {route.ifindex for route in routes if route is not None and route.is_ours}
    found = [links.parse_link(body) for body in kernel.dump(links.dump())]
    return frozenset(link.name for link in found if link.ifindex in indexes and is_host_end(link))


def _remove_table(filters: NftablesSocket, state: RoutedState) -> None:
    """Removes the table, unless a port has been added to it meanwhile."""
    if state.filter.table is not None:
        filters.commit([delete_table(routed_rules.TABLE)], state.filter.generation)


def _apply_filter(filters: NftablesSocket, state: RoutedState, difference: RoutedPlan, routed: Routed) -> int:
    """Adds elements, or replaces a table that is not whole; returns the number of tables replaced."""
    ports, sources, networks = difference.add_ports, difference.add_sources, difference.add_networks
    requests: list[NetlinkRequest] = []
    is_whole = state.filter.is_whole(routed.masquerade)
    if not is_whole:
        requests += routed_rules.replace_table(routed.masquerade)
        ports |= state.entries.ports - difference.remove_ports
        sources |= state.entries.sources - difference.remove_sources
        networks |= state.entries.networks
    requests += routed_rules.add_elements(_elements(state, ports, sources, networks))
    # A table is replaced only if no ADD has added a port to it since it was read.
    commit(filters, requests, routed_rules.MODULES, generation=0 if is_whole else state.filter.generation)
    return 0 if is_whole else 1


def _remove_elements(filters: NftablesSocket, state: RoutedState, difference: RoutedPlan) -> None:
    elements = _elements(state, difference.remove_ports, difference.remove_sources, frozenset())
    present = [(name, key) for name, key in elements if key in state.filter.elements.get(name, ())]
    try:
        filters.commit([*routed_rules.delete_elements(present), *routed_rules.forget_ports(state.gone())])
    except KernelError as error:
        if error.errno != errno.ENOENT:  # changed meanwhile, or the table was replaced without them
            raise


def _elements(
    state: RoutedState, ports: frozenset[str], sources: frozenset[LinkAddress], networks: frozenset[int]
) -> Iterator[tuple[str, bytes]]:
    for link in sorted(ports):
        yield routed_rules.port_element(state.port(link).ifindex)
    for each in sorted(sources):
        yield routed_rules.source_element(state.port(each.link).ifindex, each.address)
    for network in sorted(networks):
        yield routed_rules.network_element(network)


def _set_ipv6(difference: RoutedPlan, problems: dict[str, str], sysctl_dir: str) -> None:
    for link, settings in difference.set_links.items():
        try:
            (enable_ipv6 if settings.ipv6 else disable_ipv6)(link, sysctl_dir=sysctl_dir)
        except LinkError as error:
            problems[link] = str(error)


def _apply_tables(kernel: RouteSocket, state: RoutedState, difference: RoutedPlan, problems: dict[str, str]) -> None:
    labelled = list(port_requests(state, difference))
    for position, error in kernel.execute([request for _, request in labelled]).items():
        link, _ = labelled[position]
        if error.errno not in _GONE:
            problems[link] = str(error)


def _raise_first(errors: dict[int, KernelError]) -> None:
    for error in errors.values():
        if error.errno not in _GONE:
            raise error
