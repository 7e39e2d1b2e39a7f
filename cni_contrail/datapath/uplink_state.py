"""State of uplinks in the kernel: of both ends of them, what they have; and what the node has besides.

The node's end of an uplink is known by its alias, which stays if somebody gives the link another name.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Callable

from cni_contrail.datapath.desired import UPLINK
from cni_contrail.datapath.routed_messages import Settings, parse_settings
from cni_contrail.datapath.uplink_addresses import AnyNetwork
from cni_contrail.datapath.uplink_messages import UplinkRoute
from cni_contrail.datapath.uplink_rules import network_of_uplink, node_link
from cni_contrail.link import links
from cni_contrail.link.addresses import dump_addresses, parse_address
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkInfo, LinkRef
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address
from cni_contrail.link.routes import MAIN_TABLE, RouteInfo, dump_routes, parse_routes

_LOCAL_TABLE = 255


class EndState(NamedTuple):
    """One end of an uplink, with its addresses, and routes through the other end."""

    link: LinkInfo
    settings: Settings
    addresses: frozenset[Address]
    routes: frozenset[UplinkRoute]

    @property
    def ref(self) -> LinkRef:
        """The link, for requests."""
        return LinkRef(self.link.name, self.link.ifindex)


class NodeLinks(NamedTuple):
    """The node's ends by number of the network, and the destinations of all other routes except default routes."""

    ends: dict[int, EndState]
    others: frozenset[AnyNetwork]


def read_node(kernel: RouteSocket) -> NodeLinks:
    """Reads all uplinks of the node, in whose namespace the socket is; raises KernelError."""
    found, others = _read(kernel, lambda link: network_of_uplink(link) is not None)
    ends: dict[int, EndState] = {}
    for end in found:
        vni = network_of_uplink(end.link)
        if vni is not None and (vni not in ends or end.link.name == node_link(vni)):
            ends[vni] = end
    return NodeLinks(ends, others)


def read_network_end(kernel: RouteSocket) -> EndState | None:
    """Reads the end of the network in whose namespace the socket is, None if there is none; raises KernelError."""
    found, _ = _read(kernel, lambda link: link.name == UPLINK)
    return found[0] if found else None


def find_link(kernel: RouteSocket, name: str) -> EndState | None:
    """Returns a link without its addresses and routes, None if there is none; raises KernelError."""
    (body,) = kernel.get([links.get(name)])
    if not isinstance(body, KernelError):
        return EndState(links.parse_link(body), parse_settings(body), frozenset(), frozenset())
    if body.errno != errno.ENODEV:
        raise body
    return None


def has_ends(kernel: RouteSocket) -> bool:
    """Returns whether the node has an uplink; raises KernelError."""
    return any(network_of_uplink(links.parse_link(body)) is not None for body in kernel.dump(links.dump()))


def _read(kernel: RouteSocket, is_end: Callable[[LinkInfo], bool]) -> tuple[list[EndState], frozenset[AnyNetwork]]:
    bodies = [(links.parse_link(body), body) for body in kernel.dump(links.dump())]
    found = {link.ifindex: (link, parse_settings(body)) for link, body in bodies if is_end(link)}
    addresses = [parse_address(body) for body in kernel.dump(dump_addresses())]
    routes = [route for body in kernel.dump(dump_routes()) for route in parse_routes(body)]
    ends = [
        EndState(
            link,
            settings,
            frozenset(Address(_text(each.local), each.prefix_length) for each in addresses if each.ifindex == index),
            frozenset(
                UplinkRoute(str(_network(route)), _text(route.gateway))
                for route in routes
                if route.ifindex == index and route.gateway is not None
            ),
        )
        for index, (link, settings) in found.items()
    ]
    return ends, frozenset(_network(each) for each in routes if each.ifindex not in found and _is_relevant(each))


def _is_relevant(route: RouteInfo) -> bool:
    if route.table not in (MAIN_TABLE, _LOCAL_TABLE) or route.length == 0:
        return False
    network = _network(route)
    return not network.is_multicast and not (network.version == 6 and network.is_link_local)


def _network(route: RouteInfo) -> AnyNetwork:
    return ipaddress.ip_network((route.network, route.length))


def _text(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6 if len(address) == 16 else socket.AF_INET, address)
