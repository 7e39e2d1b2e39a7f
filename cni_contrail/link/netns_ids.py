"""By which a network namespace is known in another one: whether a sandbox still exists, without a path to it.

The host's namespace knows each namespace that a link leads to by a number (ip-netns(8), "nsid"). The number is given
with the first link and lasts as long as the namespace does, whatever becomes of links and mounts; then it is free for
another one. Sources: rtnetlink's RTM_GETNSID, linux/net_namespace.h.
"""

from __future__ import annotations

import errno
import struct

from cni_contrail.link import message
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.message import Request

_RTM_GETNSID = 90
_HEADER = bytes(4)  # struct rtgenmsg, padded: no family
_NSID = 1  # NETNSA_NSID, signed
_FD = 3  # NETNSA_FD
_NUMBER = struct.Struct("=i")


def get_id(netns_fd: int) -> Request:
    """Asks for the namespace's number; the answer is for `found_id`."""
    return Request(_RTM_GETNSID, 0, _HEADER + message.number(_FD, netns_fd), "read the sandbox's number")


def found_id(body: bytes) -> int:
    """Reads an answer to `get_id`: -1 if it has none."""
    return int(_NUMBER.unpack(message.attributes(body[len(_HEADER) :])[_NSID])[0])


def netns_exists(number: int) -> bool:
    """Tells whether the calling thread's namespace knows one by this number; raises KernelError."""
    body = _HEADER + message.attribute(_NSID, _NUMBER.pack(number))
    with RouteSocket() as host:
        (answer,) = host.get([Request(_RTM_GETNSID, 0, body, f"look for sandbox number {number}")])
    if not isinstance(answer, KernelError):
        return True
    if answer.errno != errno.ENOENT:
        raise answer
    return False
