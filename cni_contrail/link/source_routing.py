"""Source routing: traffic from an address leaves by the interface that has it.

Two interfaces of a sandbox may have addresses in one subnet, or in subnets that overlap. The main table then has one
interface for a destination, so traffic from the address of the other would leave by the wrong one. Each such address
has a table of its own, with the routes of its interface, and a rule that selects it (ip-rule(8)).

The kernel removes the routes of a table with their link, but never a rule: `remove_rules` does that.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator, Sequence
from types import TracebackType

from cni_contrail.link.addresses import network_of, packed
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import (
    CREATE,
    DUMP,
    EXCLUSIVE,
    NetlinkRequest,
    attribute,
    attributes,
    number,
    unpack_number,
)
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address, InterfacePlan, Route, SourceRouting
from cni_contrail.link.routes import add_routes

_RTM_NEWRULE = 32
_RTM_DELRULE = 33
_RTM_GETRULE = 34

# struct fib_rule_hdr: family, destination length, source length, TOS, table, two reserved, action, flags
_HEADER = struct.Struct("=BBBBBBBBI")
_LOOK_UP_TABLE = 1  # FR_ACT_TO_TBL
_FRA_SRC = 2
_FRA_PRIORITY = 6
_FRA_TABLE = 15
_DEFAULT: dict[int, str] = {socket.AF_INET: "0.0.0.0/0", socket.AF_INET6: "::/0"}


class RuleInfo(NamedTuple):
    """A rule with a source address, in network byte order, that selects a table."""

    family: int
    source: bytes
    length: int
    table: int


def table_routes(plan: InterfacePlan, source: SourceRouting) -> list[Route]:
    """Returns the routes of the table: the subnet, the interface's own of the family, and the default route.

    The subnet is on the link, unless the interface reaches it by a gateway: then it is among its own.
    """
    family, local = packed(source.address)
    routes = []
    is_routed = any(packed(gateway)[0] == family for gateway in plan.routed)
    if source.prefix_length < 8 * len(local) and not is_routed:
        routes.append(Route(network_of(Address(source.address, source.prefix_length)), None))
    routes += [route for route in plan.routes if packed(route.destination.partition("/")[0])[0] == family]
    if source.gateway is not None:
        routes.append(Route(_DEFAULT[family], source.gateway))
    return list(dict.fromkeys(routes))


def add_table_routes(end: LinkRef, plan: InterfacePlan) -> Iterator[NetlinkRequest]:
    """Requests to add the routes of the plan's tables; the addresses exist already."""
    for source in plan.source_routing:
        yield from add_routes(end, table_routes(plan, source), plan.addresses, table=source.table)


class AddedRules:
    """`with AddedRules(sandbox, plans):` adds the rules of the plans, and deletes them again if the body fails.

    A rule that exists already is left from a call that was killed. Raises KernelError.
    """

    __slots__ = ("_plans", "_sandbox")

    def __init__(self, sandbox: RouteSocket, plans: Sequence[InterfacePlan]) -> None:
        self._sandbox = sandbox
        self._plans = plans

    def __enter__(self) -> None:
        try:
            _execute(self._sandbox, _RTM_NEWRULE, CREATE | EXCLUSIVE, self._plans, errno.EEXIST)
        except KernelError:
            _delete(self._sandbox, self._plans)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            _delete(self._sandbox, self._plans)


def remove_rules(netns_fd: int, plans: Sequence[InterfacePlan]) -> None:
    """Deletes the rules of the plans in the sandbox, those that exist; raises NetnsError or KernelError."""
    with open_route_socket(netns_fd) as sandbox:
        _delete(sandbox, plans)


def dump_rules() -> NetlinkRequest:
    """Requests all rules of both families; `parse_rule` reads the answers."""
    return NetlinkRequest(_RTM_GETRULE, DUMP, _HEADER.pack(socket.AF_UNSPEC, 0, 0, 0, 0, 0, 0, 0, 0), "read rules")


def parse_rule(body: bytes) -> RuleInfo | None:
    """Parses one answer to `dump_rules`; None if the rule has no source address or no table."""
    family, _, length, _, _, _, _, action, _ = _HEADER.unpack_from(body)
    found = attributes(body[_HEADER.size :])
    if action != _LOOK_UP_TABLE or _FRA_SRC not in found:
        return None
    return RuleInfo(family, found[_FRA_SRC], length, unpack_number(found[_FRA_TABLE]))


def wanted_rule(source: SourceRouting) -> RuleInfo:
    """Returns the rule of an address."""
    family, local = packed(source.address)
    return RuleInfo(family, local, 8 * len(local), source.table)


def _delete(sandbox: RouteSocket, plans: Sequence[InterfacePlan]) -> None:
    _execute(sandbox, _RTM_DELRULE, 0, plans, errno.ENOENT)


def _execute(sandbox: RouteSocket, kind: int, flags: int, plans: Sequence[InterfacePlan], tolerated: int) -> None:
    requests = [_request(kind, flags, plan.name, source) for plan in plans for source in plan.source_routing]
    for error in sandbox.execute(requests).values():
        if error.errno != tolerated:
            raise error


def _request(kind: int, flags: int, name: str, source: SourceRouting) -> NetlinkRequest:
    rule = wanted_rule(source)
    header = _HEADER.pack(rule.family, 0, rule.length, 0, 0, 0, 0, _LOOK_UP_TABLE, 0)
    # The priority is the number of the table: before the main table (32766), and the same on each attempt.
    numbers = number(_FRA_PRIORITY, source.table) + number(_FRA_TABLE, source.table)
    what = f"{name}: {'add' if kind == _RTM_NEWRULE else 'delete'} rule from {source.address} to table {source.table}"
    return NetlinkRequest(kind, flags, header + attribute(_FRA_SRC, rule.source) + numbers, what)
