"""Connects one routed port, on the path of ADD: from the isolated host end that the plugin creates to its final state.

How pods reach everything. The host end has the gateway's address (`/32`, `/128`, the same on every host end) and MAC.
The node has a route and a permanent neighbour for each address of a pod. Pods send everything to the gateway, what is
for their own subnet, too: a pod has a route to the gateway on the link, and one to its subnet by the gateway, preferred
to the kernel's one for its address. Why not proxy ARP, with pods that ask for each other:

- IPv6 has no counterpart. Proxy entries for neighbour discovery are per link and address, so a node with 250 pods needs
  62,500 of them, and has none for addresses of other nodes that it knows by their block.
- With a default route the node would answer for every address outside.
- A pod with 1,000 peers would have 1,000 neighbours, and all namespaces of a kernel share one limit, 1024 by default.

The node asks nobody, so `arp_announce` has no effect, and `arp_ignore` may be 0, 1 or 3 for all links (`forwarding`).

Fails closed: the filter knows the link before anything else exists, so the port is mute until its sources are accepted,
which comes last. Whatever fails, or kills the process, leaves it mute.

Not promised: repair of what was changed by hand, which is the reconciler's (`routed_reconciler`).
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence

from cni_contrail.datapath import routed_messages as messages
from cni_contrail.datapath import routed_rules
from cni_contrail.datapath.desired import Masquerade, RoutedPort
from cni_contrail.datapath.forwarding import enable_forwarding, enable_ipv6
from cni_contrail.datapath.link_mac import mac_of
from cni_contrail.datapath.missing_modules import commit, open_filters
from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.datapath.routed_entries import gateways_of, has_ipv6, sources_of
from cni_contrail.link.addresses import IPV6_ADDRESSES, packed, parse_address, parse_ready_address
from cni_contrail.link.errors import KernelError, LinkError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkRef
from cni_contrail.link.lookup import index_of
from cni_contrail.link.message import NetlinkRequest

_ATTEMPTS = 10


def connect_routed(port: RoutedPort, masquerade: Masquerade | None, *, sysctl_dir: str = "/proc/sys") -> None:
    """Connects a port whose host end exists in the calling thread's network namespace. Idempotent.

    Makes the node's filter, with `masquerade`, and enables forwarding if this has not been done.

    Raises LinkError: KernelError, SysctlError, MissingModuleError, or for an address that has a route of another
    program. A port that was not connected is then mute.
    """
    with RouteSocket() as kernel, open_filters() as filters:
        end = _find(kernel, port)
        requests, sources = _encode(port, end, mac_of(kernel, end))
        elements = [routed_rules.port_element(end.ifindex), routed_rules.network_element(port.network)]
        _add_elements(filters, elements, masquerade)
        enable_forwarding(ipv6=has_ipv6(port), sysctl_dir=sysctl_dir)
        if has_ipv6(port):
            enable_ipv6(port.link, sysctl_dir=sysctl_dir)
            kernel.subscribe(IPV6_ADDRESSES)
        _execute(kernel, end, port, requests)
        # Again with the link: the reconciler may have removed the table with the last port that it knew.
        _add_elements(filters, [*elements, *sources], masquerade)


def take_over_routes(kernel: RouteSocket, end: LinkRef, addresses: Iterable[str]) -> None:
    """Moves our routes to these addresses to the link; raises LinkError for one that another program has added."""
    found = [messages.parse_host_route(body) for body in kernel.dump(messages.dump_routes())]
    owners = {route.address: route for route in found if route is not None and route.is_ours}
    for address in addresses:
        route = owners.get(address)
        if route is None:
            raise LinkError(f"{end.name}: address {address} has a route of another program")
        if route.ifindex != end.ifindex:
            kernel.execute_all([messages.move_route(end, address)])


def _find(kernel: RouteSocket, port: RoutedPort) -> LinkRef:
    index = index_of(kernel, port.link)
    if index is None:
        raise LinkError(f"link {port.link} not found")
    return LinkRef(port.link, index)


def _encode(port: RoutedPort, end: LinkRef, mac: str) -> tuple[list[NetlinkRequest], list[tuple[str, bytes]]]:
    try:
        requests = [
            messages.set_host_end(end, mac, ipv6=has_ipv6(port), group=port.network),
            *(messages.add_gateway(end, gateway) for gateway in gateways_of(port)),
            *(messages.set_neighbour(end, address, port.mac) for address in port.addresses),
            *(messages.add_route(end, address) for address in port.addresses),
        ]
        return requests, [routed_rules.source_element(end.ifindex, address) for address in sources_of(port)]
    except ValueError as error:
        raise LinkError(f"{port.link}: {error}") from error


def _execute(kernel: RouteSocket, end: LinkRef, port: RoutedPort, requests: Sequence[NetlinkRequest]) -> None:
    gateways, first_route = gateways_of(port), len(requests) - len(port.addresses)
    pending: set[bytes | None] = {packed(gateway)[1] for gateway in gateways if ":" in gateway}
    existing = []
    for position, error in sorted(kernel.execute(requests).items()):
        if error.errno != errno.EEXIST:
            raise error
        if position >= first_route:
            existing.append(port.addresses[position - first_route])
        elif 1 <= position <= len(gateways):
            pending.discard(packed(gateways[position - 1])[1])
        else:
            raise error
    if existing:
        take_over_routes(kernel, end, existing)
    _wait(kernel, end, pending)


def _wait(kernel: RouteSocket, end: LinkRef, pending: set[bytes | None]) -> None:
    """Returns when the gateway answers; raises KernelError after 5 s.

    A kernel worker lets the link receive solicitations for an IPv6 address, and notifies of the address afterwards. A
    pod whose first solicitation is lost repeats it a second later.
    """
    notifications = kernel.notifications(f"{end.name}: wait for IPv6 addresses")
    while pending:
        notification = next(notifications)
        address = parse_ready_address(notification)
        if address in pending and parse_address(notification.body).ifindex == end.ifindex:
            pending.discard(address)


def _add_elements(
    filters: NftablesSocket, elements: Iterable[tuple[str, bytes]], masquerade: Masquerade | None
) -> None:
    """Adds elements, to a new table if there is none."""
    requests = routed_rules.add_elements(elements)
    # Others make the table at the same time, and the reconciler removes it with the last port that it knows.
    for _ in range(_ATTEMPTS):
        if _tried(filters, requests, unless=errno.ENOENT):
            return
        if _tried(filters, [*routed_rules.create_table(masquerade), *requests], unless=errno.EEXIST):
            return
    raise LinkError(f"table {routed_rules.TABLE.name}: made and removed by others during each of {_ATTEMPTS} attempts")


def _tried(filters: NftablesSocket, requests: Sequence[NetlinkRequest], *, unless: int) -> bool:
    try:
        commit(filters, requests, routed_rules.MODULES)
    except KernelError as error:
        if error.errno != unless:
            raise
        return False
    return True
