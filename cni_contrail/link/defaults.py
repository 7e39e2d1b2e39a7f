"""The default routes of a sandbox: reading them, taking them over, putting them back.

The sandbox may be other plugins' too. So a default route that nobody asked for is left out if the family has one
already, of whatever metric. One that was asked for replaces those that would be preferred to it or share its metric;
they were read before by `default_routes`, and `restore_defaults` puts them back. Those of a higher metric stay: they
are not in force.

Not promised for a route that is put back: preferred source, MTU and other metrics than its priority.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Sequence

from cni_contrail.link import routes
from cni_contrail.link.addresses import packed
from cni_contrail.link.errors import KernelError, LinkError
from cni_contrail.link.exchange import RouteSocket, route_socket_in
from cni_contrail.link.links import End
from cni_contrail.link.lookup import index_of, name_of
from cni_contrail.link.message import Request
from cni_contrail.link.plan import DefaultRoute, InterfacePlan, ReplacedRoute
from cni_contrail.link.routes import FoundDefault


def default_routes(netns_fd: int) -> tuple[ReplacedRoute, ...]:
    """Returns the default routes of the sandbox: main table, both families, a multipath route once for each hop.

    Raises NetnsError or KernelError.
    """
    with route_socket_in(netns_fd) as sandbox:
        named = [(route, name_of(sandbox, route.ifindex)) for route in _read(sandbox)]
    return tuple(
        ReplacedRoute(route.family, route.gateway, name, route.metric, route.onlink)
        for route, name in named
        if name is not None
    )


def restore_defaults(netns_fd: int, replaced: Iterable[ReplacedRoute]) -> None:
    """Puts back those of the routes that are missing and whose interface still exists.

    Meant for after the removal of the interface that took them over. Raises NetnsError, or KernelError if a route
    is refused.
    """
    with route_socket_in(netns_fd) as sandbox:
        found = [
            FoundDefault(route.family, index, route.gateway, route.metric, route.onlink)
            for route in replaced
            if (index := index_of(sandbox, route.interface)) is not None
        ]
        _put_back(sandbox, found)


def take_defaults(sandbox: RouteSocket, ends: Sequence[tuple[End, InterfacePlan]]) -> None:
    """Makes the default routes of the plans, all or none; raises KernelError."""
    wanted = [(end, plan, default) for end, plan in ends for default in plan.defaults]
    if not wanted:
        return
    families = {_family(default) for _, _, default in wanted}
    present = _read(sandbox, families.pop() if len(families) == 1 else socket.AF_UNSPEC)
    asked = {_family(default) for _, _, default in wanted if default.asked}
    taken = {route.family for route in present} | asked
    in_the_way = [
        route for route in present if route.family in asked and route.metric <= routes.default_metric(route.family)
    ]
    adding = [
        (default.asked, routes.add_default(end, default, plan.addresses))
        for end, plan, default in wanted
        if default.asked or _family(default) not in taken
    ]
    try:
        _delete(sandbox, in_the_way)
        _add(sandbox, adding)
    except BaseException as error:
        _put_back_after(error, sandbox, in_the_way)
        raise


def _read(sandbox: RouteSocket, family: int = socket.AF_UNSPEC) -> list[FoundDefault]:
    return [route for body in sandbox.dump(routes.dump_routes(family)) for route in routes.found_defaults(body)]


def _delete(sandbox: RouteSocket, unwanted: Sequence[FoundDefault]) -> None:
    refusals = sandbox.carry_out([routes.delete_default(route) for route in unwanted])
    for refusal in refusals.values():
        if refusal.errno != errno.ESRCH:  # gone by itself, or with an earlier hop of the same route
            raise refusal


def _add(sandbox: RouteSocket, adding: Sequence[tuple[bool, Request]]) -> None:
    """Adds default routes; one that was not asked for gives way to one that somebody else made just now."""
    refusals = sandbox.carry_out([request for _, request in adding])
    for position, refusal in refusals.items():
        asked, _ = adding[position]
        if asked or refusal.errno != errno.EEXIST:
            raise refusal


def _put_back_after(cause: BaseException, sandbox: RouteSocket, routes_before: Sequence[FoundDefault]) -> None:
    try:
        _put_back(sandbox, routes_before)
    except KernelError as error:
        raise LinkError(f"{cause}; nor could the default route before it be put back: {error}") from cause


def _put_back(sandbox: RouteSocket, wanted: Sequence[FoundDefault]) -> None:
    present = {_identity(route) for route in _read(sandbox)}
    missing = [route for route in wanted if _identity(route) not in present]
    for refusal in sandbox.carry_out([routes.put_back(route) for route in missing]).values():
        if refusal.errno not in (errno.EEXIST, errno.ENODEV):  # back by itself, or its interface went just now
            raise refusal


def _identity(route: FoundDefault) -> tuple[int, int, str | None, int]:
    return (route.family, route.ifindex, route.gateway, route.metric)


def _family(default: DefaultRoute) -> int:
    return packed(default.gateway)[0]
