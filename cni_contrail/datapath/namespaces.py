"""Network namespaces of virtual networks: `contrail-<vni>` below /run/netns, where `ip netns` finds them, too.

A namespace lives as long as something holds it. Here that is a bind mount, so it outlives the process that created it;
the name says whose it is, and no other state is kept. The process must be in the host's mount namespace.

Not promised: that a namespace has a bridge or a filter; the reconciler gives it both.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Callable

from cni_contrail.link.errors import NetnsError
from cni_contrail.link.host_side import DIRECTORY, network_namespaces
from cni_contrail.link.netns import open_netns

_MS_BIND, _MS_REC, _MS_SHARED = 0x1000, 0x4000, 0x100000
_MNT_DETACH = 2
_CLONE_NEWNET = 0x40000000
_OWN = "/proc/thread-self/ns/net"


def name_of(vni: int) -> str:
    """Returns the name of a network's namespace."""
    return f"contrail-{vni}"


def vni_of(name: str) -> int:
    """Returns the number of the network of a namespace."""
    return int(name.rpartition("-")[2])


class Namespaces:
    """The namespaces below a directory; methods raise NetnsError."""

    def __init__(self, directory: str = DIRECTORY) -> None:
        self._directory = directory

    def path(self, vni: int) -> str:
        """Returns where a network's namespace is, or will be."""
        return f"{self._directory}/{name_of(vni)}"

    def existing(self) -> set[int]:
        """Returns the numbers of the networks that have a namespace, or a leftover of one."""
        return {vni_of(name) for name in network_namespaces(self._directory)}

    def open(self, vni: int) -> int:
        """Returns a descriptor of the network's namespace, which the caller closes; creates it if needed."""
        try:
            return open_netns(self.path(vni))
        except NetnsError:
            # Missing, or the mount is gone (a file remains): nothing in it can be reached any more.
            self._create(vni)
        return open_netns(self.path(vni))

    def is_current(self, vni: int, netns: int) -> bool:
        """Returns whether the descriptor is still that of the network's namespace."""
        try:
            return os.path.samestat(os.fstat(netns), os.stat(self.path(vni)))
        except OSError:
            return False

    def delete(self, vni: int) -> None:
        """Removes the mount; the namespace goes with its last user. Idempotent."""
        path = self.path(vni)
        _call("umount2", path, _MNT_DETACH, ignore=(errno.EINVAL, errno.ENOENT))
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise NetnsError(f"{path}: cannot remove: {error.strerror}") from error

    def _create(self, vni: int) -> None:
        self._share_directory()
        path = self.path(vni)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o444))
        except OSError as error:
            raise NetnsError(f"{path}: cannot create: {error.strerror}") from error
        _in_new_namespace(lambda: _call("mount", _OWN, path, "none", _MS_BIND, None))

    def _share_directory(self) -> None:
        """Makes the directory a shared mount, so that a namespace that is removed goes in every mount namespace."""
        os.makedirs(self._directory, mode=0o755, exist_ok=True)
        try:
            _call("mount", "", self._directory, "none", _MS_SHARED | _MS_REC, None)
        except NetnsError:  # no mount of its own yet
            _call("mount", self._directory, self._directory, "none", _MS_BIND | _MS_REC, None)
            _call("mount", "", self._directory, "none", _MS_SHARED | _MS_REC, None)


def _in_new_namespace(work: Callable[[], None]) -> None:
    """Runs `work` in a new network namespace, in a thread of its own, which ends in it."""
    errors: list[NetnsError] = []

    def run() -> None:
        try:
            _call("unshare", _CLONE_NEWNET)
            work()
        except NetnsError as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="new-netns")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def _call(function: str, *arguments: str | int | None, ignore: tuple[int, ...] = ()) -> None:
    """Calls a function of the C library; raises NetnsError."""
    encoded = [os.fsencode(each) if isinstance(each, str) else each for each in arguments]
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, function)(*encoded) != 0 and (number := ctypes.get_errno()) not in ignore:
        shown = " ".join(str(each) for each in arguments if isinstance(each, str) and each)
        raise NetnsError(f"{function} {shown}".rstrip() + f": {os.strerror(number)}")
