"""MTU of host ends: one that is less than that of the pod's end loses packets of full size, without an answer.

ADD creates both ends of a pod's interface with one MTU. Later the pod's end may have another one: a chained plugin such
as `tuning` has set it, or the pod itself. So a host end needs the MTU of the pod's end, but no more than ADD has given
it: a pod does not decide about links of the node. One that has more stays, since who raises the MTU of the pod's end
needs it on both.

The pod's end is read only if the host end has less than ADD has given it.

Sources: rtnetlink(7), linux/if_link.h.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from cni_contrail.datapath.desired import LocalPort, RoutedPort
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkInfo, LinkRef, packed_mtu, parse_mtu
from cni_contrail.link.message import NetlinkRequest, number
from cni_contrail.link.named_tuple import NamedTuple

_RTM_NEWLINK, _RTM_GETLINK = 16, 18
_INFO = struct.Struct("=BxHiII")  # struct ifinfomsg
_IFLA_EXT_MASK, _IFLA_TARGET_NETNSID = 29, 46
_SKIP_STATISTICS = 8  # RTEXT_FILTER_SKIP_STATS
_SAME_NAMESPACE = -1


class LowMtu(NamedTuple):
    """A host end that has less than it needs, in bytes."""

    link: LinkRef
    found: int
    needed: int


def low_mtus(
    kernel: RouteSocket, ports: Sequence[LocalPort | RoutedPort], found: Mapping[str, LinkInfo]
) -> list[LowMtu]:
    """Returns the host ends of ports that have too low an MTU; `found` are the links of the socket's namespace by name.

    Raises KernelError.
    """
    lowered = [(found[port.link], port.mtu) for port in ports if port.link in found and found[port.link].mtu < port.mtu]
    answers = kernel.get([_get_peer(link) for link, _ in lowered]) if lowered else []
    low = []
    for (link, mtu), answer in zip(lowered, answers, strict=True):
        if isinstance(answer, KernelError):
            continue  # a pod that ends: both ends of a pair go together
        needed = min(mtu, parse_mtu(answer))
        if link.mtu < needed:
            low.append(LowMtu(LinkRef(link.name, link.ifindex), link.mtu, needed))
    return low


def raise_mtu(low: LowMtu) -> NetlinkRequest:
    """Requests the MTU that a host end needs."""
    body = _INFO.pack(0, 0, low.link.ifindex, 0, 0) + packed_mtu(low.needed)
    return NetlinkRequest(_RTM_NEWLINK, 0, body, f"set MTU of link {low.link.name} to {low.needed}")


def _get_peer(link: LinkInfo) -> NetlinkRequest:
    """Requests the other end of a pair, in the namespace that has it."""
    body = _INFO.pack(0, 0, link.peer_index, 0, 0) + number(_IFLA_EXT_MASK, _SKIP_STATISTICS)
    if link.peer_netns_id != _SAME_NAMESPACE:
        body += number(_IFLA_TARGET_NETNSID, link.peer_netns_id)
    return NetlinkRequest(_RTM_GETLINK, 0, body, f"find the other end of link {link.name}")
