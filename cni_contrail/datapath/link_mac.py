"""The MAC of a link by ioctl, which takes about 1 us; a netlink exchange, with the parsing of its answer, takes 50.

Source: netdevice(7).
"""

from __future__ import annotations

import fcntl
import struct

from cni_contrail.link.exchange import RouteSocket, kernel_error
from cni_contrail.link.links import LinkRef

_SIOCGIFHWADDR = 0x8927
_REQUEST = struct.Struct("@16s24x")  # struct ifreq: the name, then a struct sockaddr
_ANSWER = struct.Struct("@18x6s16x")


def mac_of(kernel: RouteSocket, link: LinkRef) -> str:
    """Returns the MAC of a link in the namespace of the socket; raises KernelError."""
    try:
        answer = fcntl.ioctl(kernel.fileno(), _SIOCGIFHWADDR, _REQUEST.pack(link.name.encode()))
    except OSError as error:
        raise kernel_error(f"read the MAC of link {link.name}", error) from error
    (mac,) = _ANSWER.unpack(answer)
    return bytes(mac).hex(":")
