"""Default routes of a sandbox: reads, replaces and restores them.

Other plugins may own default routes of the same sandbox. A default route that was not requested is therefore skipped if
its family already has one, of any metric. A requested one replaces those that would take precedence over it or share
its metric; `read_default_routes` records them first, and `restore_defaults` restores them. Routes of a higher metric
stay: they are not in effect.

Not promised for a restored route: preferred source, MTU, and metrics other than its priority.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Sequence

from cni_contrail.link import routes
from cni_contrail.link.addresses import packed
from cni_contrail.link.errors import KernelError, LinkError
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.links import LinkRef
from cni_contrail.link.lookup import index_of, name_of
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.plan import DefaultRoute, InterfacePlan, ReplacedRoute
from cni_contrail.link.routes import DefaultRouteEntry


def read_default_routes(netns_fd: int) -> tuple[ReplacedRoute, ...]:
    """Returns the default routes of the sandbox's main table, both families; a multipath route once per hop.

    Raises NetnsError or KernelError.
    """
    with open_route_socket(netns_fd) as sandbox:
        named = [(route, name_of(sandbox, route.ifindex)) for route in _read(sandbox)]
    return tuple(
        ReplacedRoute(route.family, route.gateway, name, route.metric, route.onlink)
        for route, name in named
        if name is not None
    )


def restore_defaults(netns_fd: int, replaced: Iterable[ReplacedRoute]) -> None:
    """Restores those routes that are missing and whose interface still exists.

    Call it after the interface that replaced them is removed. Raises NetnsError, or KernelError if the kernel rejects
    a route.
    """
    with open_route_socket(netns_fd) as sandbox:
        entries = [
            DefaultRouteEntry(route.family, index, route.gateway, route.metric, route.onlink)
            for route in replaced
            if (index := index_of(sandbox, route.interface)) is not None
        ]
        _restore(sandbox, entries)


def execute_and_read_defaults(
    sandbox: RouteSocket, plans: Sequence[InterfacePlan], requests: Sequence[NetlinkRequest]
) -> list[DefaultRouteEntry]:
    """Executes the requests, and returns the default routes of the families in which the plans have some.

    Raises the first error as KernelError.
    """
    families = {_family(default) for plan in plans for default in plan.defaults}
    if families:
        return _read(sandbox, families.pop() if len(families) == 1 else socket.AF_UNSPEC, requests)
    sandbox.execute_all(requests)
    return []


def install_defaults(
    sandbox: RouteSocket,
    ends: Sequence[tuple[LinkRef, InterfacePlan]],
    present: Sequence[DefaultRouteEntry] | None = None,
) -> None:
    """Installs the default routes of the plans, all or none; raises KernelError.

    `present` are those that are there, if they have just been read.
    """
    wanted = [(end, plan, default) for end, plan in ends for default in plan.defaults]
    if not wanted:
        return
    if present is None:
        present = execute_and_read_defaults(sandbox, [plan for _, plan in ends], [])
    requested = {_family(default) for _, _, default in wanted if default.asked}
    taken = {route.family for route in present} | requested
    conflicting = [
        route
        for route in present
        if route.family in requested and route.metric <= routes.default_route_metric(route.family)
    ]
    adding = [
        (default.asked, routes.add_default_route(end, default, plan.addresses))
        for end, plan, default in wanted
        if default.asked or _family(default) not in taken
    ]
    try:
        # Deleted first: one of the same metric makes the exclusive creation fail, one of a lower metric would win.
        _delete(sandbox, conflicting)
        _add(sandbox, adding)
    except BaseException as error:
        _restore_after(error, sandbox, conflicting)
        raise


def _read(
    sandbox: RouteSocket, family: int = socket.AF_UNSPEC, requests: Sequence[NetlinkRequest] = ()
) -> list[DefaultRouteEntry]:
    bodies = sandbox.execute_all_and_dump(requests, routes.dump_routes(family), keep=routes.is_default)
    return [route for body in bodies for route in routes.parse_default_routes(body)]


def _delete(sandbox: RouteSocket, unwanted: Sequence[DefaultRouteEntry]) -> None:
    errors = sandbox.execute([routes.delete_default_route(route) for route in unwanted])
    for error in errors.values():
        if error.errno != errno.ESRCH:  # already gone, or deleted with an earlier hop of the same multipath route
            raise error


def _add(sandbox: RouteSocket, adding: Sequence[tuple[bool, NetlinkRequest]]) -> None:
    """Adds default routes; one that was not requested yields to one that another plugin has just added."""
    errors = sandbox.execute([request for _, request in adding])
    for position, error in errors.items():
        asked, _ = adding[position]
        if asked or error.errno != errno.EEXIST:
            raise error


def _restore_after(cause: BaseException, sandbox: RouteSocket, routes_before: Sequence[DefaultRouteEntry]) -> None:
    try:
        _restore(sandbox, routes_before)
    except KernelError as error:
        raise LinkError(f"{cause}; restoring the previous default route failed too: {error}") from cause


def _restore(sandbox: RouteSocket, wanted: Sequence[DefaultRouteEntry]) -> None:
    present = {_identity(route) for route in _read(sandbox)}
    missing = [route for route in wanted if _identity(route) not in present]
    for error in sandbox.execute([routes.restore_default_route(route) for route in missing]).values():
        # EEXIST: restored by another process since `_read`. ENODEV: its interface was removed since.
        if error.errno not in (errno.EEXIST, errno.ENODEV):
            raise error


def _identity(route: DefaultRouteEntry) -> tuple[int, int, str | None, int]:
    return (route.family, route.ifindex, route.gateway, route.metric)


def _family(default: DefaultRoute) -> int:
    return packed(default.gateway)[0]
