"""Routes of a sandbox, as far as plans have them.

A pod may have millions of other routes, and default routes in any number of tables: none of these is kept in memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from cni_contrail.link.addresses import packed
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkInfo
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import InterfacePlan, Route
from cni_contrail.link.routes import UNICAST, dump_routes, is_default, is_to, packed_destination, parse_routes
from cni_contrail.link.source_routing import table_routes

_BATCH = 256  # routes that are looked at between two checkpoints


class RouteKey(NamedTuple):
    """What identifies a planned route in a table; addresses are in network byte order."""

    ifindex: int
    family: int
    network: bytes
    length: int
    gateway: bytes | None


class ObservedRoutes(NamedTuple):
    """Routes of plans that exist.

    `planned` are those in any table but those of source routing: these have copies of routes, which only packets by
    rules use. `in_tables` are those copies, with their tables. `default_families` have a unicast default route through
    any interface, also outside those tables.
    """

    planned: frozenset[RouteKey]
    in_tables: frozenset[tuple[int, RouteKey]]
    default_families: frozenset[int]


def route_key(end: LinkInfo, route: Route) -> RouteKey:
    """Returns the key of a planned route through a link."""
    gateway = packed(route.gateway)[1] if route.gateway else None
    return RouteKey(end.ifindex, *packed_destination(route.destination), gateway)


def observe_routes(
    sandbox: RouteSocket, plans: Sequence[InterfacePlan], ends: Mapping[str, LinkInfo], checkpoint: Callable[[], None]
) -> ObservedRoutes:
    """Reads the routes of both families; `ends` are the links that exist, by name.

    `checkpoint` is called often, and may raise: then the socket is of no use any more. Raises KernelError.
    """
    look = _Look([plan for plan in plans if plan.name in ends], ends)
    position = itertools.count(1)

    def note(body: bytes) -> bool:
        if next(position) % _BATCH == 0:
            checkpoint()
        look.note(body)
        return False

    sandbox.dump(dump_routes(), keep=note)
    return ObservedRoutes(frozenset(look.planned), frozenset(look.in_tables), frozenset(look.default_families))


class _Look:
    """One look at all routes. If the kernel has it repeated, what was there at first counts too."""

    def __init__(self, plans: Sequence[InterfacePlan], ends: Mapping[str, LinkInfo]) -> None:
        self._planned = frozenset(route_key(ends[plan.name], route) for plan in plans for route in plan.routes)
        self._in_tables = frozenset(_copies(plans, ends))
        self._tables = frozenset(table for table, _ in self._in_tables)
        keys = itertools.chain(self._planned, (key for _, key in self._in_tables))
        self._destinations = frozenset((key.family, key.network, key.length) for key in keys)
        self.planned: set[RouteKey] = set()
        self.in_tables: set[tuple[int, RouteKey]] = set()
        self.default_families: set[int] = set()

    def note(self, body: bytes) -> None:
        """Notes what matters of one answer of the kernel."""
        if not is_default(body) and not is_to(body, self._destinations):
            return
        for route in parse_routes(body):
            key = RouteKey(route.ifindex, route.family, route.network, route.length, route.gateway)
            if route.table in self._tables:
                self.in_tables |= {(route.table, key)} & self._in_tables
                continue
            self.planned |= {key} & self._planned
            if route.length == 0 and route.kind == UNICAST:
                self.default_families.add(route.family)


def _copies(plans: Sequence[InterfacePlan], ends: Mapping[str, LinkInfo]) -> Iterator[tuple[int, RouteKey]]:
    for plan in plans:
        for source in plan.source_routing:
            for route in table_routes(plan, source):
                yield source.table, route_key(ends[plan.name], route)
