"""System calls that Python does not offer: mount(2), umount2(2) and unshare(2), through the C library."""

from __future__ import annotations

import ctypes
import os

from cni_contrail.link.errors import NetnsError

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 0x1000, 0x4000, 0x40000, 0x100000
MNT_DETACH = 2


def system_call(function: str, *arguments: str | int | None, ignore: tuple[int, ...] = ()) -> None:
    """Calls a function of the C library; raises NetnsError unless it succeeds or fails with an ignored errno."""
    encoded = [os.fsencode(each) if isinstance(each, str) else each for each in arguments]
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, function)(*encoded) != 0 and (number := ctypes.get_errno()) not in ignore:
        shown = " ".join(str(each) for each in arguments if isinstance(each, str) and each)
        raise NetnsError(f"{function} {shown}".rstrip() + f": {os.strerror(number)}")
