"""Link queries by ioctl: each takes about 1 us, a netlink exchange about 10.

An ioctl on a netlink socket applies to the network namespace of the socket, wherever the calling thread is.
Sources: netdevice(7), linux/ethtool.h.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import struct

from cni_contrail.deadline import Deadline
from cni_contrail.link import links
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket, kernel_error

_SIOCGIFNAME = 0x8910
_SIOCGIFINDEX = 0x8933
_SIOCETHTOOL = 0x8946
_ETHTOOL_GLINK = 0x0A
_TIMEOUT_S = 5
# struct ifreq, 40 bytes: the name, then a union, of which a request uses either the index or the pointer
_WITH_INDEX = struct.Struct("@16si20x")
_WITH_POINTER = struct.Struct("@16sP16x")


def index_of(kernel: RouteSocket, name: str) -> int | None:
    """Returns the index of a link, None if there is no link of this name."""
    answer = _ioctl(kernel, _SIOCGIFINDEX, _WITH_INDEX.pack(name.encode(), 0), f"find link {name}")
    return None if answer is None else int(_WITH_INDEX.unpack(answer)[1])


def name_of(kernel: RouteSocket, index: int) -> str | None:
    """Returns the name of a link, None if there is no link of this index."""
    answer = _ioctl(kernel, _SIOCGIFNAME, _WITH_INDEX.pack(b"", index), f"find link {index}")
    return None if answer is None else bytes(_WITH_INDEX.unpack(answer)[0]).rstrip(b"\0").decode()


def refresh_carrier(kernel: RouteSocket, name: str) -> None:
    """Returns when the kernel has processed a carrier change; by itself it takes up to a second.

    Until then a link counts as down although it is up: it has no IFF_RUNNING and no link-local address, and a host end
    drops outgoing packets. Querying the carrier (ETHTOOL_GLINK) makes Linux 6.8 and later process pending changes
    first. Earlier kernels are waited for: usually microseconds, but up to a second if both ends have the same index.
    """
    if not _has_carrier(kernel, name) or _QUERY_PROCESSES_CHANGES:
        return
    for _ in Deadline(_TIMEOUT_S).attempts(0.001, 0.02):
        (answer,) = kernel.get([links.get(name)])
        if isinstance(answer, KernelError) or links.is_operational(answer) or not _has_carrier(kernel, name):
            return
    raise KernelError(f"refresh carrier of link {name}", errno.ETIMEDOUT, f"not processed within {_TIMEOUT_S} s")


def _has_carrier(kernel: RouteSocket, name: str) -> bool:
    query = array.array("I", (_ETHTOOL_GLINK, 0))  # struct ethtool_value
    pointer, _ = query.buffer_info()
    _ioctl(kernel, _SIOCETHTOOL, _WITH_POINTER.pack(name.encode(), pointer), f"refresh carrier of link {name}")
    return bool(query[1])


def _is_at_least(release: str, oldest: tuple[int, int]) -> bool:
    """Returns whether a kernel release such as `6.1.0-56-amd64` is that version or later."""
    numbers = release.replace("-", ".").replace("+", ".").split(".")
    return tuple(int(number) if number.isdigit() else 0 for number in numbers[:2]) >= oldest


_QUERY_PROCESSES_CHANGES = _is_at_least(os.uname().release, (6, 8))


def _ioctl(kernel: RouteSocket, number: int, request: bytes, what: str) -> bytes | None:
    """Returns the changed struct ifreq, None if the link does not exist."""
    try:
        return fcntl.ioctl(kernel.fileno(), number, request)
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.ENXIO):  # no such link
            return None
        raise kernel_error(what, error) from error
