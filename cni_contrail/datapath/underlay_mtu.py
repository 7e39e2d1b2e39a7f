"""MTU of the underlay: the longest packet of a pod that fits into a packet between two nodes.

It is that of the link, or of the route, by which packets to a node leave, or less if a router on the way has said so:
the kernel keeps that for some minutes. The least of what is configured is the node's *tunnel MTU*, which becomes the
MTU of new pods. What routers say does not count there: it comes and goes, and anybody may forge it.
Sources: rtnetlink(7), RFC 7348, section 5.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from cni_contrail.datapath.route_lookup import find_route, parse_found_route
from cni_contrail.link import links
from cni_contrail.link.addresses import dump_addresses, packed, parse_address
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkInfo
from cni_contrail.link.message import attributes, unpack_number
from cni_contrail.link.named_tuple import NamedTuple

_CACHE = struct.Struct("=IIiI")  # begin of struct rta_cacheinfo: users, last use, time until it expires, error
_RTA_OIF, _RTA_METRICS, _RTA_CACHEINFO = 4, 8, 12
_RTAX_MTU = 2
_FIB_MATCH = 0x2000  # RTM_F_FIB_MATCH: the route as it is configured, without what was learnt
_LOOPBACK = "lo"
_LONGEST_PACKET = 65535  # of IP, whatever MTU a link may have

OVERHEAD = {4: 50, 6: 70}
"""Bytes of a tunnelled packet around that of the pod, by the IP version of the underlay: IP, UDP, VXLAN, Ethernet."""


class UnderlayMtu(NamedTuple):
    """`room` is the longest packet of pods by address of a node; without those to which there is no route.

    `tunnel` is the node's tunnel MTU, None if it is not known.
    """

    room: dict[str, int]
    tunnel: int | None


UNKNOWN = UnderlayMtu({}, None)


class _Link(NamedTuple):
    info: LinkInfo
    mtus: dict[int, int]  # by IP version


class _Way(NamedTuple):
    ifindex: int
    now: int
    configured: int


def measure(addresses: Collection[str], nodes: Iterable[str]) -> UnderlayMtu:
    """Measures what fits on the way to other nodes, for a node with these tunnel addresses, one or one per family.

    In the calling thread's network namespace. Raises KernelError.
    """
    with RouteSocket() as kernel:
        found = {link.info.ifindex: link for link in map(_parse_link, kernel.dump(links.dump()))}
        ways = dict(_ways(kernel, list(nodes), found))
        preferred = min(addresses, key=_version)  # as other nodes prefer it
        own = list(_links_with(preferred, found, kernel))
    fitting = [_fitting(way.configured, node) for node, way in ways.items()]
    # A link by which no way leads, such as a dummy, only has the address.
    leaving = {way.ifindex for way in ways.values()} or {each for each in found if found[each].info.name != _LOOPBACK}
    fitting += [_fitting(link.mtus[_version(preferred)], preferred) for link in own if link.info.ifindex in leaving]
    room = {node: _fitting(way.now, node) for node, way in ways.items()}
    return UnderlayMtu(room, min(fitting, default=None) if own else None)


def mtu_problem(mtu: int, room: Mapping[str, int]) -> str | None:
    """Returns what is wrong with a network's MTU, None if its packets fit; `room` is as `measure` returns it."""
    short = {node: each for node, each in room.items() if each < mtu}
    if not short:
        return None
    node = min(short, key=lambda each: (short[each], each))
    return f"MTU {mtu}: packets to node {node} have room for {short[node]} bytes only"


def _fitting(mtu: int, address: str) -> int:
    return max(min(mtu, _LONGEST_PACKET) - OVERHEAD[_version(address)], 1)


def _version(address: str) -> int:
    return 6 if ":" in address else 4


def _parse_link(body: bytes) -> _Link:
    info, ipv6 = links.parse_link(body), links.parse_ipv6_mtu(body)
    return _Link(info, {4: info.mtu, 6: info.mtu if ipv6 is None else min(info.mtu, ipv6)})


def _links_with(address: str, found: Mapping[int, _Link], kernel: RouteSocket) -> Iterator[_Link]:
    wanted = packed(address)[1]
    for each in map(parse_address, kernel.dump(dump_addresses())):
        if each.local == wanted and each.ifindex in found:
            yield found[each.ifindex]


def _ways(kernel: RouteSocket, nodes: Sequence[str], found: Mapping[int, _Link]) -> Iterator[tuple[str, _Way]]:
    routes = _routes(kernel, nodes, 0)
    learnt = [node for node, route in routes.items() if _expires(route)]
    configured = routes | _routes(kernel, learnt, _FIB_MATCH)
    for node, route in routes.items():
        link = found.get(unpack_number(route[_RTA_OIF])) if _RTA_OIF in route else None
        if link is not None:
            mtu = link.mtus[_version(node)]
            yield node, _Way(link.info.ifindex, _mtu(route, mtu), _mtu(configured[node], mtu))


def _routes(kernel: RouteSocket, nodes: Sequence[str], flags: int) -> dict[str, Mapping[int, bytes]]:
    answers = zip(nodes, kernel.get([find_route(node, flags) for node in nodes]), strict=True)
    found = ((node, answer) for node, answer in answers if not isinstance(answer, KernelError))
    return {node: parse_found_route(answer).attributes for node, answer in found}


def _mtu(route: Mapping[int, bytes], of_link: int) -> int:
    metrics = attributes(route.get(_RTA_METRICS, b""))
    return min(unpack_number(metrics[_RTAX_MTU]), of_link) if _RTAX_MTU in metrics else of_link


def _expires(route: Mapping[int, bytes]) -> bool:
    """Whether a route, or what the kernel has learnt of it, expires."""
    information = route.get(_RTA_CACHEINFO, b"")
    return len(information) >= _CACHE.size and _CACHE.unpack_from(information)[2] != 0
