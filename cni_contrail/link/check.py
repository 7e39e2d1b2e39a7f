"""Compares interfaces with their plans.

It tolerates what a plugin later in the chain may do (CNI specification 1.0.0, section 2, CHECK): more addresses and
routes; a default route through another interface; a route moved to another table (`sbr`); another MTU of either end,
since a plugin that raises it in the sandbox (`tuning`) needs it on the host, too. A changed MAC is a difference: a
caller that knows from the result that a later plugin changed it puts the new one into the plan.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence

from cni_contrail.link.addresses import packed
from cni_contrail.link.bridge_port import BRIDGE, BRIDGE_INDEXES
from cni_contrail.link.host_side import DIRECTORY
from cni_contrail.link.links import LinkInfo
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.observe import HostEnd, Observed, observe
from cni_contrail.link.observed_routes import route_key
from cni_contrail.link.plan import InterfacePlan, Route
from cni_contrail.link.source_routing import table_routes, wanted_rule

_DAD_FAILED = 0x08  # IFA_F_DADFAILED
_FAMILIES: dict[int, str] = {socket.AF_INET: "IPv4", socket.AF_INET6: "IPv6"}

# A kernel dump may omit entries while they change, and not every kernel marks every such dump as interrupted; so a
# difference counts only if every attempt finds one.
_ATTEMPTS = 3


class _Index(NamedTuple):
    """What was observed, with its addresses indexed for one look-up per planned one."""

    observed: Observed
    addresses: dict[tuple[int, bytes, int], int]  # link index, address, prefix length: flags


def check_interfaces(
    netns_fd: int,
    plans: Sequence[InterfacePlan],
    checkpoint: Callable[[], None] = lambda: None,
    *,
    netns_dir: str = DIRECTORY,
) -> list[str]:
    """Returns one sentence for each difference between the plans and the kernel.

    The calling thread is in the host's network namespace. `checkpoint` is called often, and may raise to end the call.
    Raises NetnsError or KernelError.
    """
    found: list[str] = []
    for _ in range(_ATTEMPTS):
        index = _indexed(observe(netns_fd, plans, checkpoint, netns_dir))
        found = []
        for plan in plans:
            checkpoint()
            found += _differences(plan, index)
        if not found:
            break
    return found


def _indexed(observed: Observed) -> _Index:
    addresses = {(each.ifindex, each.local, each.prefix_length): each.flags for each in observed.addresses}
    return _Index(observed, addresses)


def _differences(plan: InterfacePlan, index: _Index) -> Iterator[str]:
    sandbox_end = index.observed.sandbox_ends.get(plan.name)
    yield from _host_side(plan, sandbox_end, index)
    if sandbox_end is None:
        yield f"{plan.name} does not exist in the sandbox."
        return
    yield from _sandbox_end(plan, sandbox_end)
    yield from _addresses(plan, sandbox_end, index)
    yield from _routes(plan, sandbox_end, index)
    yield from _defaults(plan, index)
    yield from _source_routing(plan, sandbox_end, index)


def _host_side(plan: InterfacePlan, sandbox_end: LinkInfo | None, index: _Index) -> Iterator[str]:
    if plan.vlan_id:
        from cni_contrail.link.check_macvlans import macvlan_differences  # nested mode only

        yield from macvlan_differences(plan, sandbox_end, index.observed.macvlans)
        return
    host_end = index.observed.host_ends.get(plan.host_name)
    if host_end is None:
        yield f"The host end {plan.host_name} of {plan.name} does not exist."
        return
    yield from _host_end(plan, host_end.link)
    if plan.namespace and host_end.master not in BRIDGE_INDEXES:
        yield f"{plan.host_name} is not a port of bridge {BRIDGE} in network namespace {plan.namespace}."
    if sandbox_end is not None and not _paired(host_end, sandbox_end):
        yield f"{plan.name} and {plan.host_name} are not the two ends of one veth pair."


def _host_end(plan: InterfacePlan, link: LinkInfo) -> Iterator[str]:
    yield from _either_end(link, "veth")
    if link.alias != plan.alias:
        yield f"{link.name} has the alias {link.alias!r} instead of {plan.alias!r}."


def _sandbox_end(plan: InterfacePlan, link: LinkInfo) -> Iterator[str]:
    yield from _either_end(link, "macvlan" if plan.vlan_id else "veth")
    if link.mac != plan.mac.lower():
        yield f"{link.name} has the MAC address {link.mac} instead of {plan.mac.lower()}."


def _either_end(link: LinkInfo, kind: str) -> Iterator[str]:
    if link.kind != kind:
        yield f"{link.name} is a link of kind {link.kind or 'unknown'} instead of {kind}."
    if not link.is_up:
        yield f"{link.name} is down."


def _paired(host_end: HostEnd, sandbox_end: LinkInfo) -> bool:
    link = host_end.link
    actual = (link.peer_index, sandbox_end.peer_index, link.peer_netns_id)
    return actual == (sandbox_end.ifindex, link.ifindex, host_end.sandbox_id)


def _addresses(plan: InterfacePlan, end: LinkInfo, index: _Index) -> Iterator[str]:
    for address in plan.addresses:
        flags = index.addresses.get((end.ifindex, packed(address.address)[1], address.prefix_length))
        if flags is None:
            yield f"{plan.name} does not have the address {address.address}/{address.prefix_length}."
        elif flags & _DAD_FAILED:
            yield f"{plan.name} cannot use {address.address}: another host has it (duplicate address detection)."


def _routes(plan: InterfacePlan, end: LinkInfo, index: _Index) -> Iterator[str]:
    for wanted in plan.routes:
        if route_key(end, wanted) not in index.observed.routes.planned:
            yield f"{plan.name} does not have the route to {_text(wanted)}."


def _source_routing(plan: InterfacePlan, end: LinkInfo, index: _Index) -> Iterator[str]:
    yield from index.observed.arp_differences.get(plan.name, ())
    for source in plan.source_routing:
        if wanted_rule(source) not in index.observed.rules:
            yield f"The sandbox has no rule from {source.address} to table {source.table}."
        for wanted in table_routes(plan, source):
            if (source.table, route_key(end, wanted)) not in index.observed.routes.in_tables:
                yield f"{plan.name} does not have the route to {_text(wanted)} in table {source.table}."


def _text(route: Route) -> str:
    return f"{route.destination} via {route.gateway}" if route.gateway else route.destination


def _defaults(plan: InterfacePlan, index: _Index) -> Iterator[str]:
    """Accepts any default route of the family: another plugin may have added one before or after."""
    for default in plan.defaults:
        family, _ = packed(default.gateway)
        if family not in index.observed.routes.default_families:
            yield f"The sandbox has no {_FAMILIES[family]} default route, through {plan.name} or any other interface."
