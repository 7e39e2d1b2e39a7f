"""Makes the interfaces of a pod, all or nothing.

All interfaces go through each step together, since a step costs the kernel one exchange however many there are:

1. Host: veth pairs, the other end straight in the sandbox, in the order of the plans, so that the indexes have it too.
2. Host: sysctls, then alias and up. The host end is up first, so that the sandbox end has its carrier, and sends,
   the moment it is up itself.
3. Sandbox: sysctls; then links up, addresses, and when these are all there, routes. Then both ends and all addresses
   are waited for until they serve.
4. Sandbox: default routes, the only thing that may touch what other plugins made; so nothing can fail behind them.

The calling thread is in the host's network namespace and is there again afterwards.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence

from cni_contrail.link import links
from cni_contrail.link.addresses import add_address
from cni_contrail.link.defaults import take_defaults
from cni_contrail.link.errors import KernelError, LinkError, LinkExistsError
from cni_contrail.link.exchange import RouteSocket, route_socket_in
from cni_contrail.link.links import End
from cni_contrail.link.lookup import index_of
from cni_contrail.link.message import Request
from cni_contrail.link.netns import Inside
from cni_contrail.link.netns_ids import found_id, get_id
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.plan_check import check_plan
from cni_contrail.link.readiness import Readiness
from cni_contrail.link.remove import delete_links
from cni_contrail.link.routes import add_route
from cni_contrail.link.sysctls import Sysctls


def make_interfaces(netns_fd: int, plans: Sequence[InterfacePlan], *, sysctl_dir: str = "/proc/sys") -> int:
    """Makes all interfaces of the plans between the host's namespace and the sandbox `netns_fd`, or none.

    Returns by which number the sandbox is known in the host's namespace, now that links lead there (`netns_ids`).

    Raises LinkExistsError if a name is taken on either side (that link is left as it was), SysctlError, NetnsError,
    KernelError or LinkError; the message names interface, step and cause. Whatever it made is unmade then.
    """
    sysctls = _checked(plans, sysctl_dir)
    with RouteSocket() as host:
        _create(host, netns_fd, plans)
        try:
            number = _finish_host_ends(host, netns_fd, plans, sysctls)
            _finish_sandbox_ends(host, netns_fd, plans, sysctls)
        except BaseException as error:
            _unmake(host, plans, error)
            raise
    return number


def configure_interfaces(netns_fd: int, plans: Sequence[InterfacePlan], *, sysctl_dir: str = "/proc/sys") -> None:
    """Gives interfaces that were made bare their addresses and routes, where these are known only afterwards.

    Raises as `make_interfaces` does, but undoes nothing: removing the links is left to the caller.
    """
    sysctls = _checked(plans, sysctl_dir)
    with RouteSocket() as host:
        _finish_sandbox_ends(host, netns_fd, plans, sysctls)


def _checked(plans: Sequence[InterfacePlan], sysctl_dir: str) -> Sysctls:
    """Finds what can be wrong before anything is made."""
    sysctls = Sysctls(sysctl_dir)
    for plan in plans:
        check_plan(plan)
        sysctls.check(plan)
    return sysctls


def _create(host: RouteSocket, netns_fd: int, plans: Sequence[InterfacePlan]) -> None:
    refusals = host.carry_out([links.create_pair(plan, netns_fd) for plan in plans])
    if not refusals:
        return
    first = min(refusals)
    error = _explained(refusals[first], plans[first], host, netns_fd)
    _unmake(host, [plan for position, plan in enumerate(plans) if position not in refusals], error)
    raise error


def _explained(refusal: KernelError, plan: InterfacePlan, host: RouteSocket, netns_fd: int) -> LinkError:
    """Finds out which of the two names is taken, if that is what the kernel says."""
    if refusal.errno != errno.EEXIST:
        return refusal
    if index_of(host, plan.host_name) is not None:
        return LinkExistsError(plan.name, plan.host_name, "host")
    with route_socket_in(netns_fd) as sandbox:
        taken = index_of(sandbox, plan.name) is not None
    return LinkExistsError(plan.name, plan.name, "sandbox") if taken else refusal


def _finish_host_ends(host: RouteSocket, netns_fd: int, plans: Sequence[InterfacePlan], sysctls: Sysctls) -> int:
    """Returns the number of the sandbox."""
    sysctls.settle_host_ends(plans)
    settling = [links.set_host_end(plan, ipv6=sysctls.has_ipv6(plan)) for plan in plans]
    return found_id(host.carry_out_all_and_get(settling, get_id(netns_fd)))


def _finish_sandbox_ends(host: RouteSocket, netns_fd: int, plans: Sequence[InterfacePlan], sysctls: Sysctls) -> None:
    with Inside(netns_fd):
        sysctls.settle_sandbox_ends(plans)
        sandbox = RouteSocket()
    with sandbox:
        ends = [(_end(sandbox, plan), plan) for plan in plans]
        readiness = Readiness(sandbox, plans)
        sandbox.carry_out_all([*_links_and_addresses(ends), *_routes(ends)])
        readiness.wait(host)
        take_defaults(sandbox, ends)


def _end(sandbox: RouteSocket, plan: InterfacePlan) -> End:
    index = index_of(sandbox, plan.name)
    if index is None:
        raise LinkError(f"{plan.name}: somebody removed it from the sandbox while it was made")
    return End(plan.name, index)


def _links_and_addresses(ends: Sequence[tuple[End, InterfacePlan]]) -> Iterator[Request]:
    for end, plan in ends:
        yield links.set_sandbox_end(end)
        for address in plan.addresses:
            yield add_address(end, address)


def _routes(ends: Sequence[tuple[End, InterfacePlan]]) -> Iterator[Request]:
    for end, plan in ends:
        for route in plan.routes:
            yield add_route(end, route, plan.addresses)


def _unmake(host: RouteSocket, plans: Sequence[InterfacePlan], cause: BaseException) -> None:
    """Deletes the links of the plans, all made by us; raises LinkError with both causes if that fails too."""
    try:
        indexes = [(plan.host_name, index_of(host, plan.host_name)) for plan in plans]
        delete_links(host, [End(name, index) for name, index in indexes if index is not None])
    except KernelError as error:
        raise LinkError(f"{cause}; nor could it be undone: {error}") from cause
