"""Creates the interfaces of a pod, all or nothing.

All interfaces go through each step together, since a step costs one kernel exchange however many interfaces there are:

1. Host: creates the veth pairs, each in the namespace of its host end and with the other end directly in the sandbox,
   in the order of the plans, so that the link indexes have the same order.
2. Host: sets sysctls, then alias and up. The host end is up first, so that the sandbox end has a carrier, and can send,
   as soon as it is up itself.
3. Sandbox: sets sysctls; then sets links up and adds addresses, and behind all addresses the routes, and rules where
   subnets overlap. Then waits until both ends and all addresses are usable.
4. Sandbox: installs default routes, the only step that may change what other plugins created. It is the last one, so
   that no later failure can leave their routes replaced.

The calling thread is in the host's network namespace, before and after.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from cni_contrail.link import links
from cni_contrail.link.addresses import IPV6_ADDRESSES, add_address, packed, packed_with_length, parse_ready_address
from cni_contrail.link.bridge_port import BRIDGE, packed_master, set_bridged_end
from cni_contrail.link.defaults import execute_and_read_defaults, install_defaults
from cni_contrail.link.errors import KernelError, LinkError, LinkExistsError
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.host_side import NO_NETWORKS, HostSides
from cni_contrail.link.links import LinkRef
from cni_contrail.link.lookup import index_of, refresh_carrier
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.netns import InNetns
from cni_contrail.link.netns_ids import assign_netns_id, get_netns_id, parse_netns_id
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.remove import delete_links
from cni_contrail.link.routes import add_routes, packed_destination
from cni_contrail.link.sysctls import Sysctls


def make_interfaces(
    netns_fd: int,
    plans: Sequence[InterfacePlan],
    *,
    sysctl_dir: str = "/proc/sys",
    networks: Mapping[str, int] = NO_NETWORKS,
) -> int:
    """Creates all interfaces of the plans between the host's namespace and the sandbox `netns_fd`, or none.

    `networks` are descriptors of the network namespaces that the plans name; each has its bridge.

    Returns the namespace ID by which the host's namespace now knows the sandbox (see `netns_ids`).

    Raises LinkExistsError if a name is taken on either side (that link is left unchanged), SysctlError, NetnsError,
    KernelError or LinkError; the message names interface, step and cause. Whatever was created is deleted again.
    """
    sysctls = checked_plans(plans, sysctl_dir)
    with HostSides(networks) as hosts:
        _create(hosts, netns_fd, plans)
        try:
            sandbox_id = _finish_host_ends(hosts, netns_fd, plans, sysctls)
            finish_sandbox_ends(hosts, netns_fd, plans, sysctls)
        except BaseException as error:
            _delete(hosts, plans, error)
            raise
    return sandbox_id


def configure_interfaces(netns_fd: int, plans: Sequence[InterfacePlan], *, sysctl_dir: str = "/proc/sys") -> None:
    """Adds addresses and routes to interfaces that were created without, where these are known only later.

    Raises as `make_interfaces` does, but undoes nothing: the caller removes the links.
    """
    sysctls = checked_plans(plans, sysctl_dir)
    with HostSides(NO_NETWORKS) as hosts:
        finish_sandbox_ends(hosts, netns_fd, plans, sysctls)


def checked_plans(plans: Sequence[InterfacePlan], sysctl_dir: str) -> Sysctls:
    """Rejects invalid plans before anything is created; raises LinkError."""
    sysctls = Sysctls(sysctl_dir)
    for plan in plans:
        _check_encoding(plan)
        sysctls.check(plan)
    return sysctls


def _check_encoding(plan: InterfacePlan) -> None:
    """Raises LinkError, with interface and value, if a value cannot be encoded; the kernel judges its meaning."""
    try:
        links.packed_name(plan.name)
        links.packed_name(plan.host_name)
        links.packed_alias(plan.alias)
        links.packed_mac(plan.mac)
        links.packed_mtu(plan.mtu)
        for address in plan.addresses:
            packed_with_length(address)
        for route in plan.routes:
            packed_destination(route.destination)
            if route.gateway is not None:
                packed(route.gateway)
        for default in plan.defaults:
            packed(default.gateway)
    except ValueError as error:
        raise LinkError(f"{plan.name}: {error}") from error


def _create(hosts: HostSides, netns_fd: int, plans: Sequence[InterfacePlan]) -> None:
    created: list[InterfacePlan] = []
    groups = [(host, group, _master(host, group[0].namespace)) for host, group in hosts.split(plans)]
    for host, group, master in groups:
        errors = host.execute([links.create_pair(plan, netns_fd, master) for plan in group])
        created += [plan for position, plan in enumerate(group) if position not in errors]
        if errors:
            first = min(errors)
            error = _explained(errors[first], group[first], host, netns_fd)
            # The names of the rejected ones may belong to others, so only what was created is deleted.
            _delete(hosts, created, error)
            raise error


def _master(host: RouteSocket, namespace: str) -> bytes:
    if not namespace:
        return b""
    bridge = index_of(host, BRIDGE)
    if bridge is None:
        raise LinkError(f"network namespace {namespace}: bridge {BRIDGE} not found")
    return packed_master(bridge)


def _explained(error: KernelError, plan: InterfacePlan, host: RouteSocket, netns_fd: int) -> LinkError:
    """Returns which of the two names is taken: EEXIST does not say."""
    if error.errno != errno.EEXIST:
        return error
    if index_of(host, plan.host_name) is not None:
        return LinkExistsError(plan.name, plan.host_name, "host")
    with open_route_socket(netns_fd) as sandbox:
        taken = index_of(sandbox, plan.name) is not None
    return LinkExistsError(plan.name, plan.name, "sandbox") if taken else error


def _finish_host_ends(hosts: HostSides, netns_fd: int, plans: Sequence[InterfacePlan], sysctls: Sysctls) -> int:
    """Returns the namespace ID of the sandbox."""
    own = [plan for plan in plans if not plan.namespace]
    sandbox_id = _finish_own_ends(hosts.of(""), netns_fd, own, sysctls) if own else assign_netns_id(netns_fd)
    for host, group in hosts.split([plan for plan in plans if plan.namespace]):
        # The namespace has IPv6 off for new links, and a port of a bridge receives no packets itself.
        host.execute_all([set_bridged_end(plan) for plan in group])
    return sandbox_id


def _finish_own_ends(host: RouteSocket, netns_fd: int, plans: Sequence[InterfacePlan], sysctls: Sysctls) -> int:
    sysctls.configure_host_ends(plans)
    requests = [links.set_host_end(plan, ipv6=sysctls.supports_ipv6(plan)) for plan in plans]
    return parse_netns_id(host.execute_all_and_get(requests, get_netns_id(netns_fd)))


def finish_sandbox_ends(hosts: HostSides, netns_fd: int, plans: Sequence[InterfacePlan], sysctls: Sysctls) -> None:
    """Configures the links of the plans that exist in the sandbox: steps 3 and 4; undoes nothing but rules."""
    with InNetns(netns_fd):
        # Both need the thread in the sandbox: sysctl files and sockets belong to the namespace of who opens them.
        sysctls.configure_sandbox_ends(plans)
        sandbox = RouteSocket()
    with sandbox:
        ends = [(_end(sandbox, plan), plan) for plan in plans]
        readiness = _Readiness(sandbox, plans)
        requests = [*_links_and_addresses(ends), *_routes(ends)]
        if readiness.is_immediate:
            present = execute_and_read_defaults(sandbox, plans, requests)
        else:
            sandbox.execute_all(requests)
            present = None  # read later: they could change during the wait
        with _added_rules(sandbox, plans):
            readiness.wait(hosts)
            install_defaults(sandbox, ends, present)


def _added_rules(sandbox: RouteSocket, plans: Sequence[InterfacePlan]) -> AbstractContextManager[object]:
    if not any(plan.source_routing for plan in plans):
        return contextlib.nullcontext()
    from cni_contrail.link.source_routing import AddedRules  # few pods need it

    return AddedRules(sandbox, plans)


def _end(sandbox: RouteSocket, plan: InterfacePlan) -> LinkRef:
    index = index_of(sandbox, plan.name)
    if index is None:
        raise LinkError(f"{plan.name}: removed from the sandbox by another process while it was created")
    return LinkRef(plan.name, index)


def _links_and_addresses(ends: Sequence[tuple[LinkRef, InterfacePlan]]) -> Iterator[NetlinkRequest]:
    for end, plan in ends:
        yield links.set_sandbox_end(end, shares_subnet=bool(plan.source_routing))
        for address in plan.addresses:
            yield add_address(end, address)


def _routes(ends: Sequence[tuple[LinkRef, InterfacePlan]]) -> Iterator[NetlinkRequest]:
    for end, plan in ends:
        yield from add_routes(end, plan.routes, plan.addresses)
        if plan.source_routing:
            from cni_contrail.link.source_routing import add_table_routes  # few pods need it

            yield from add_table_routes(end, plan)


class _Readiness:
    """Waits for the work that the kernel does after it has acknowledged a request.

    - A link counts as down for up to a second after its carrier came (see `lookup.refresh_carrier`).
    - An IPv6 address exists at once, but a kernel worker adds the route by which packets to it are received. Then the
      kernel sends a notification of the address: usually some 20 us later, more where many pods start at once.

    Create it before the addresses are added: it subscribes to the notifications, which are sent only once.
    """

    def __init__(self, sandbox: RouteSocket, plans: Sequence[InterfacePlan]) -> None:
        self._sandbox = sandbox
        self._plans = plans
        addresses = [packed(address.address) for plan in plans for address in plan.addresses]
        self._pending: set[bytes | None] = {local for family, local in addresses if family == socket.AF_INET6}
        if self._pending:
            sandbox.subscribe(IPV6_ADDRESSES)

    @property
    def is_immediate(self) -> bool:
        """Whether `wait` waits for nothing that takes time."""
        return not self._pending

    def wait(self, hosts: HostSides) -> None:
        """Returns when all links and addresses are usable; raises KernelError after 5 s."""
        for plan in self._plans:
            refresh_carrier(self._sandbox, plan.name)
            refresh_carrier(hosts.of(plan.namespace), plan.host_name)
        notifications = self._sandbox.notifications("wait for IPv6 addresses")
        while self._pending:
            self._pending.discard(parse_ready_address(next(notifications)))


def _delete(hosts: HostSides, plans: Sequence[InterfacePlan], cause: BaseException) -> None:
    """Deletes the links of the plans, all created by us; raises LinkError with both causes if that fails too."""
    try:
        for host, group in hosts.split(plans):
            indexes = [(plan.host_name, index_of(host, plan.host_name)) for plan in group]
            delete_links(host, [LinkRef(name, index) for name, index in indexes if index is not None])
    except KernelError as error:
        raise LinkError(f"{cause}; cleanup failed too: {error}") from cause
