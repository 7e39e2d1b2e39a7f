"""`python without_netfilter.py COMMAND...`: runs a command as on a kernel without netfilter's netlink sockets.

A seccomp filter answers `socket(AF_NETLINK, ..., NETLINK_NETFILTER)` with EPROTONOSUPPORT, as a kernel does that has no
module `nfnetlink` and cannot load it.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

_SOCKET = {"x86_64": 41, "aarch64": 198}
_AF_NETLINK, _NETLINK_NETFILTER = 16, 12
_NUMBER, _FIRST, _THIRD = 0, 16, 32  # offsets in struct seccomp_data; of the arguments, the lower halves
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _SECCOMP_MODE_FILTER = 22, 38, 2


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def refuse_netfilter_sockets() -> None:
    """Installs the filter in this process and what it starts; it cannot be removed."""
    steps = [
        (_LOAD, 0, 0, _NUMBER), (_JUMP_IF_EQUAL, 0, 5, _SOCKET[platform.machine()]),
        (_LOAD, 0, 0, _FIRST), (_JUMP_IF_EQUAL, 0, 3, _AF_NETLINK),
        (_LOAD, 0, 0, _THIRD), (_JUMP_IF_EQUAL, 0, 1, _NETLINK_NETFILTER),
        (_RETURN, 0, 0, _FAIL | errno.EPROTONOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ]  # fmt: skip
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    library = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(steps), code)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if library.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    refuse_netfilter_sockets()
    os.execvp(sys.argv[1], sys.argv[1:])
