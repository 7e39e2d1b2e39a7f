"""Network namespace IDs: whether a sandbox still exists, without a path to it.

The host's namespace assigns an ID (ip-netns(8), "nsid") to each namespace that a link leads to. The ID is assigned with
the first link, or on request (a macvlan leads from the sandbox to the host only), and lasts as long as the namespace,
whatever becomes of links and mounts; after that the kernel may reuse it for another namespace. Sources: rtnetlink's
RTM_GETNSID, linux/net_namespace.h.
"""

from __future__ import annotations

import errno
import os
import struct

from cni_contrail.link import message
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.netns import open_own_netns

_RTM_NEWNSID = 88
_RTM_GETNSID = 90
_HEADER = bytes(4)  # struct rtgenmsg, padded: no family
_NSID = 1  # NETNSA_NSID, signed
_FD = 3  # NETNSA_FD
_SIGNED = struct.Struct("=i")
_ANY = -1  # the kernel chooses


def get_netns_id(netns_fd: int) -> NetlinkRequest:
    """Requests the namespace's ID; `parse_netns_id` reads the answer."""
    return NetlinkRequest(_RTM_GETNSID, 0, _HEADER + message.number(_FD, netns_fd), "read the sandbox's namespace ID")


def parse_netns_id(body: bytes) -> int:
    """Reads an answer to `get_netns_id`: -1 if the namespace has no ID."""
    return int(_SIGNED.unpack(message.attributes(body[len(_HEADER) :])[_NSID])[0])


def assign_netns_id(netns_fd: int) -> int:
    """Returns the ID by which the calling thread's namespace knows a namespace, which gets one if it has none.

    Raises KernelError.
    """
    body = _HEADER + message.attribute(_NSID, _SIGNED.pack(_ANY)) + message.number(_FD, netns_fd)
    with RouteSocket() as host:
        errors = host.execute([NetlinkRequest(_RTM_NEWNSID, 0, body, "assign the sandbox a namespace ID")])
        for error in errors.values():
            if error.errno != errno.EEXIST:  # it has one
                raise error
        return parse_netns_id(host.execute_all_and_get([], get_netns_id(netns_fd)))


def netns_id_of(netns_fd: int) -> int:
    """Returns the ID by which the calling thread's namespace knows a namespace, -1 if it has none.

    Raises KernelError.
    """
    with RouteSocket() as host:
        return parse_netns_id(host.execute_all_and_get([], get_netns_id(netns_fd)))


def own_netns_id() -> int:
    """Returns the ID by which the calling thread's namespace knows itself, -1 if it has none. Raises KernelError."""
    netns = open_own_netns()
    try:
        return netns_id_of(netns)
    finally:
        os.close(netns)


def netns_exists(netns_id: int) -> bool:
    """Returns whether the calling thread's namespace knows a namespace of this ID; raises KernelError."""
    body = _HEADER + message.attribute(_NSID, _SIGNED.pack(netns_id))
    with RouteSocket() as host:
        (answer,) = host.get([NetlinkRequest(_RTM_GETNSID, 0, body, f"look up namespace ID {netns_id}")])
    if not isinstance(answer, KernelError):
        return True
    if answer.errno != errno.ENOENT:
        raise answer
    return False
