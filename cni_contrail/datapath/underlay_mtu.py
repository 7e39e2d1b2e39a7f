"""MTU of the underlay: the longest packet of a pod that fits into a packet between two nodes.

It is that of the link, or of the route, by which packets to a node leave; a shorter one on the way is not known. What
fits the link with the node's own tunnel address is the node's *tunnel MTU*, which becomes the MTU of new pods.
Sources: rtnetlink(7), RFC 7348, section 5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from cni_contrail.link import links
from cni_contrail.link.addresses import AddressInfo, dump_addresses, packed, parse_address
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.message import NetlinkRequest, attribute, attributes, unpack_number

_RTM_GETROUTE = 26
_ROUTE = struct.Struct("=BBBBBBBBI")  # struct rtmsg
_RTA_DST, _RTA_OIF, _RTA_METRICS = 1, 4, 8
_RTAX_MTU = 2
_LOOPBACK = "lo"
_LONGEST_PACKET = 65535  # of IP, whatever MTU a link may have

OVERHEAD = {4: 50, 6: 70}
"""Bytes of a tunnelled packet around that of the pod, by the IP version of the underlay: IP, UDP, VXLAN, Ethernet."""


def measure(nodes: Iterable[str]) -> dict[str, int]:
    """Returns by address of a node the longest packet of pods; without those to which there is no route.

    In the calling thread's network namespace. Raises KernelError.
    """
    with RouteSocket() as kernel:
        mtus = {link.ifindex: link.mtu for link in map(links.parse_link, kernel.dump(links.dump()))}
        wanted = list(nodes)
        answers = zip(wanted, kernel.get([_route_to(node) for node in wanted]), strict=True)
        found = {node: _mtu(answer, mtus) for node, answer in answers if not isinstance(answer, KernelError)}
    return {node: mtu - OVERHEAD[_version(node)] for node, mtu in found.items()}


def tunnel_mtu(addresses: Iterable[str], room: Mapping[str, int]) -> int | None:
    """Returns the tunnel MTU of a node with these tunnel addresses, None if it is not known.

    Nodes prefer IPv4, so that address counts if there is one. A loopback link carries nothing to other nodes, whatever
    its MTU: if the address is there, the narrowest way to a node counts, with `room` as `measure` returns it. In the
    calling thread's network namespace. Raises KernelError.
    """
    preferred = min(addresses, key=_version, default=None)
    if preferred is None:
        return None
    with RouteSocket() as kernel:
        holders = {each.ifindex for each in map(parse_address, kernel.dump(dump_addresses())) if _is(each, preferred)}
        found = [link for link in map(links.parse_link, kernel.dump(links.dump())) if link.ifindex in holders]
    mtus = [link.mtu for link in found if link.name != _LOOPBACK]
    if mtus:
        return min(_LONGEST_PACKET, *mtus) - OVERHEAD[_version(preferred)]
    return min(room.values(), default=None) if found else None


def mtu_problem(mtu: int, room: dict[str, int]) -> str | None:
    """Returns what is wrong with a network's MTU, None if its packets fit; `room` is as `measure` returns it."""
    short = {node: each for node, each in room.items() if each < mtu}
    if not short:
        return None
    node = min(short, key=lambda each: (short[each], each))
    return f"MTU {mtu}: packets to node {node} have room for {short[node]} bytes only"


def _version(address: str) -> int:
    return 6 if ":" in address else 4


def _is(found: AddressInfo, address: str) -> bool:
    return found.local == packed(address)[1]


def _route_to(node: str) -> NetlinkRequest:
    family, address = packed(node)
    body = _ROUTE.pack(family, 8 * len(address), 0, 0, 0, 0, 0, 0, 0) + attribute(_RTA_DST, address)
    return NetlinkRequest(_RTM_GETROUTE, 0, body, f"find route to {node}")


def _mtu(body: bytes, mtus: dict[int, int]) -> int:
    found = attributes(body[_ROUTE.size :])
    metrics = attributes(found.get(_RTA_METRICS, b""))
    link = mtus.get(unpack_number(found[_RTA_OIF]), 0) if _RTA_OIF in found else 0
    return unpack_number(metrics[_RTAX_MTU]) if _RTAX_MTU in metrics else link
