"""What is asked of links by ioctl, since that takes a microsecond where a netlink exchange takes ten.

An ioctl on a netlink socket is about the links of the socket's namespace, wherever the calling thread is.
Sources: netdevice(7), linux/ethtool.h.
"""

from __future__ import annotations

import array
import errno
import fcntl
import struct
from collections.abc import Iterable

from cni_contrail.link.exchange import RouteSocket, failure

_SIOCGIFNAME = 0x8910
_SIOCGIFINDEX = 0x8933
_SIOCETHTOOL = 0x8946
_ETHTOOL_GLINK = 0x0A
_WITH_INDEX = struct.Struct("@16si20x")  # struct ifreq: name, and by the kind of request an index
_WITH_POINTER = struct.Struct("@16sP16x")  # or a pointer


def index_of(kernel: RouteSocket, name: str) -> int | None:
    """Returns the index of the link of this name, None if there is none."""
    answer = _ask(kernel, _SIOCGIFINDEX, _WITH_INDEX.pack(name.encode(), 0), f"find link {name}")
    return None if answer is None else int(_WITH_INDEX.unpack(answer)[1])


def any_exists(names: Iterable[str]) -> bool:
    """Tells whether there is a link of any of these names in the calling thread's namespace; raises KernelError."""
    with RouteSocket() as kernel:
        return any(index_of(kernel, name) is not None for name in names)


def name_of(kernel: RouteSocket, index: int) -> str | None:
    """Returns the name of the link of this index, None if there is none."""
    answer = _ask(kernel, _SIOCGIFNAME, _WITH_INDEX.pack(b"", index), f"find link {index}")
    return None if answer is None else bytes(_WITH_INDEX.unpack(answer)[0]).rstrip(b"\0").decode()


def settle_carrier(kernel: RouteSocket, name: str) -> None:
    """Has the kernel act at once on a carrier that came, which it does up to a second late by itself.

    Until then a link counts as down, though it is up: it has no IFF_RUNNING and no link-local address, and a host end
    drops what it shall send. Asking whether there is a carrier (ETHTOOL_GLINK) makes the kernel catch up first.
    """
    question = array.array("I", (_ETHTOOL_GLINK, 0))
    pointer, _ = question.buffer_info()
    _ask(kernel, _SIOCETHTOOL, _WITH_POINTER.pack(name.encode(), pointer), f"settle link {name}")


def _ask(kernel: RouteSocket, number: int, request: bytes, what: str) -> bytes | None:
    try:
        return fcntl.ioctl(kernel.fileno(), number, request)
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.ENXIO):
            return None
        raise failure(what, error) from error
