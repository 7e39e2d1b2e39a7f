"""Network namespaces of virtual networks: `contrail-<vni>` below /run/netns, where `ip netns` finds them, too.

A namespace lives as long as something holds it. Here that is a bind mount, so it outlives the process that created it;
the name says whose it is, and no other state is kept. To create one, the process must be in the host's mount namespace
(`held_namespaces` is for all others); to delete one, it need only see the directory.

Not promised: that a namespace has a bridge or a filter; the reconciler gives it both.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterator

from cni_contrail.datapath.system_calls import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    MNT_DETACH,
    MS_BIND,
    MS_PRIVATE,
    MS_REC,
    MS_SHARED,
    system_call,
)
from cni_contrail.deadline import Deadline
from cni_contrail.link.errors import NetnsError, NotReadyError
from cni_contrail.link.host_side import DIRECTORY, network_namespaces
from cni_contrail.link.netns import is_netns, open_netns, open_own_netns

_VOLATILE = "/run"
_LOCK_TIMEOUT = 5.0  # seconds; each owner needs milliseconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02


def name_of(vni: int) -> str:
    """Returns the name of a network's namespace."""
    return f"contrail-{vni}"


def vni_of(name: str) -> int:
    """Returns the number of the network of a namespace."""
    return int(name.rpartition("-")[2])


class Namespaces:
    """The namespaces below a directory; methods raise NetnsError, or NotReadyError if it is locked for over 5 s.

    The directory is locked while it changes, as `ip netns` does: two mounts on one path would outlive a deletion.
    """

    def __init__(self, directory: str = DIRECTORY) -> None:
        self.directory = directory

    def path(self, vni: int) -> str:
        """Returns where a network's namespace is, or will be."""
        return f"{self.directory}/{name_of(vni)}"

    def existing(self) -> set[int]:
        """Returns the numbers of the networks that have a namespace, or a leftover of one."""
        return {vni_of(name) for name in network_namespaces(self.directory)}

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
        """Removes the mount; the namespace goes with its last user. Idempotent.

        The kernel removes the mounts of other mount namespaces with the file, so this also works in a container.
        """
        path = self.path(vni)
        if not os.path.lexists(path):
            return
        with self._locked_directory():
            system_call("umount2", path, MNT_DETACH, ignore=(errno.EINVAL, errno.ENOENT))
            try:
                os.unlink(path)
            except FileNotFoundError:
                return
            except OSError as error:
                raise NetnsError(f"{path}: cannot remove: {error.strerror}") from error

    def _create(self, vni: int) -> None:
        path = self.path(vni)
        os.makedirs(self.directory, mode=0o755, exist_ok=True)
        with self._locked_directory():
            if is_netns(path):  # created by another process meanwhile
                return
            self._share_directory()
            try:
                os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o444))
            except OSError as error:
                raise NetnsError(f"{path}: cannot create: {error.strerror}") from error
            netns = new_namespace()
            try:
                system_call("mount", f"/proc/self/fd/{netns}", path, "none", MS_BIND, None)
            finally:
                os.close(netns)

    @contextlib.contextmanager
    def _locked_directory(self) -> Iterator[None]:
        try:
            directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise NetnsError(f"{self.directory}: cannot open: {error.strerror}") from error
        try:
            for _ in Deadline(_LOCK_TIMEOUT).attempts(_FIRST_PAUSE, _LONGEST_PAUSE):
                if try_lock(directory, fcntl.LOCK_EX):
                    break
            else:
                raise NotReadyError(f"{self.directory}: locked by another process for over {_LOCK_TIMEOUT:g} s")
            yield
        finally:
            os.close(directory)

    def _share_directory(self) -> None:
        """Makes the directory a shared mount, so that a namespace that is removed goes in every mount namespace."""
        try:
            system_call("mount", "", self.directory, "none", MS_SHARED | MS_REC, None)
        except NetnsError:  # no mount of its own yet
            system_call("mount", self.directory, self.directory, "none", MS_BIND | MS_REC, None)
            system_call("mount", "", self.directory, "none", MS_SHARED | MS_REC, None)


def try_lock(descriptor: int, operation: int) -> bool:
    """Locks a file (LOCK_SH or LOCK_EX) until all its descriptors are closed; returns whether nobody else holds it."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def enter_private_namespaces() -> str:
    """Moves the calling thread into a network and a mount namespace of its own, for as long as it lives.

    Returns an empty directory for namespaces of networks, which only this thread and its children see. Raises
    NetnsError.
    """
    system_call("unshare", CLONE_NEWNET | CLONE_NEWNS)
    system_call("mount", "", "/", "none", MS_PRIVATE | MS_REC, None)
    system_call("mount", "none", _VOLATILE, "tmpfs", 0, None)
    return f"{_VOLATILE}/netns"


def new_namespace() -> int:
    """Creates a network namespace and returns its descriptor, which the caller closes. Raises NetnsError.

    A thread of its own enters it, and ends there.
    """
    created: list[int] = []
    errors: list[NetnsError] = []

    def run() -> None:
        try:
            system_call("unshare", CLONE_NEWNET)
            created.append(open_own_netns())
        except NetnsError as error:
            errors.append(error)
        except OSError as error:
            errors.append(NetnsError(f"new network namespace: cannot open: {error.strerror}"))

    thread = threading.Thread(target=run, name="new-netns")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return created[0]
