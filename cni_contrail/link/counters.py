"""Packets and bytes of links. Other requests for links leave them out, since they are most of an answer.

Sources: rtnetlink(7), `struct rtnl_link_stats64` in linux/if_link.h.
"""

from __future__ import annotations

import struct

from cni_contrail.link.message import DUMP, NetlinkRequest, attributes
from cni_contrail.link.named_tuple import NamedTuple

_RTM_GETLINK = 18
_INFO = struct.Struct("=BxHiII")  # struct ifinfomsg
_IFLA_IFNAME = 3
_IFLA_STATS64 = 23
_STATISTICS = struct.Struct("=QQQQ")  # packets received and sent, bytes received and sent; more follow


class Counters(NamedTuple):
    """What a link has received and sent since it was created."""

    received_packets: int
    received_bytes: int
    sent_packets: int
    sent_bytes: int


def dump_counters() -> NetlinkRequest:
    """Requests all links with their counters; `parse_counters` reads the answers."""
    return NetlinkRequest(_RTM_GETLINK, DUMP, _INFO.pack(0, 0, 0, 0, 0), "read counters of links")


def parse_counters(body: bytes) -> tuple[str, Counters]:
    """Returns name and counters of a link from an answer to `dump_counters`."""
    values = attributes(body[_INFO.size :])
    packets_in, packets_out, bytes_in, bytes_out = _STATISTICS.unpack_from(values[_IFLA_STATS64])
    name = values[_IFLA_IFNAME].rstrip(b"\0").decode(errors="replace")
    return name, Counters(packets_in, bytes_in, packets_out, bytes_out)
