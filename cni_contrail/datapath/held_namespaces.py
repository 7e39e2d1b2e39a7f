"""Namespaces of networks for a process whose mounts the host does not see, such as a daemon in a container.

What such a process binds goes with it, and its pods' traffic. So a new namespace is only held by a descriptor, until an
ADD needs it: then the shim, which runs on the host, binds it to its name there (*pins* it), before anything of a pod is
in it. The mount propagates to this process. So what is not pinned has no port and may go with the process, and what is
pinned is found by its name, also by the next process.

Not promised: that a namespace that this process holds is the one that becomes pinned. Whoever comes first determines
it; all others use that one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from cni_contrail.datapath.namespaces import Namespaces, name_of, new_namespace
from cni_contrail.link.errors import NetnsError
from cni_contrail.link.host_side import DIRECTORY
from cni_contrail.link.netns import open_netns

Pin = Callable[[str, int], None]
"""Binds a namespace, given by name and descriptor, on the host, unless one is bound there already.

Raises NetnsError or NotReadyError, or `PluginError` if the call has ended.
"""


class HeldNamespaces(Namespaces):
    """The pinned namespaces, and those that this process holds until they are pinned. Thread-safe."""

    def __init__(self, directory: str = DIRECTORY) -> None:
        super().__init__(directory)
        self._lock = threading.Lock()
        self._held: dict[int, int] = {}

    def existing(self) -> set[int]:
        """Returns the numbers of the networks that have a namespace, or a leftover of one."""
        with self._lock:
            return super().existing() | self._held.keys()

    def open(self, vni: int) -> int:
        """Returns a descriptor of the network's namespace, which the caller closes; creates it if needed."""
        with self._lock:
            try:
                pinned = open_netns(self.path(vni))
            except NetnsError:
                return self._open_held(vni)
            self._release(vni)  # only the mount keeps it from now on
            return pinned

    def is_current(self, vni: int, netns: int) -> bool:
        """Returns whether the descriptor is still that of the network's namespace."""
        current = self.open(vni)
        try:
            return os.path.sameopenfile(current, netns)
        finally:
            os.close(current)

    def delete(self, vni: int) -> None:
        """Removes the pin, and holds the namespace no longer. Idempotent."""
        super().delete(vni)
        with self._lock:
            self._release(vni)

    def pinned_by(self, pin: Pin) -> Namespaces:
        """Returns the namespaces for an ADD, which are pinned before they are used."""
        return _PinnedNamespaces(self, pin)

    def _open_held(self, vni: int) -> int:
        if vni not in self._held:
            self._held[vni] = new_namespace()
        # Not a duplicate: that would share its locks with the held descriptor, which stays open.
        return open_netns(f"/proc/self/fd/{self._held[vni]}")

    def _release(self, vni: int) -> None:
        held = self._held.pop(vni, None)
        if held is not None:
            os.close(held)


class _PinnedNamespaces(Namespaces):
    """Namespaces that an ADD uses: only pinned ones."""

    def __init__(self, held: HeldNamespaces, pin: Pin) -> None:
        super().__init__(held.directory)
        self._held = held
        self._pin = pin

    def open(self, vni: int) -> int:
        """Returns a descriptor of the network's namespace, which the caller closes; pins it if needed."""
        try:
            return open_netns(self.path(vni))
        except NetnsError:
            netns = self._held.open(vni)
        try:
            self._pin(name_of(vni), netns)
        finally:
            os.close(netns)
        try:
            return open_netns(self.path(vni))
        except NetnsError as error:
            raise NetnsError(
                f"network namespace {self.path(vni)}: bound by the shim, but not seen by the daemon: {self.directory} "
                "must be mounted from the host with propagation HostToContainer (rslave)"
            ) from error
