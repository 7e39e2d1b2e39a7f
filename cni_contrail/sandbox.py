"""The sandbox of a call: the pod's network namespace at CNI_NETNS.

Its path is valid only in the mount and PID namespaces of the runtime. The daemon, in a container, gets a descriptor
from the shim instead, or the errno with which opening failed; the path is still used in records and messages.
"""

from __future__ import annotations

import os

from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import cannot_be_opened, checked_netns, open_netns


class Sandbox(NamedTuple):
    """`path` is CNI_NETNS; `descriptor` belongs to the caller; `failure` is the errno if it could not be opened.

    Without either, the path is opened.
    """

    path: str
    descriptor: int | None = None
    failure: int = 0

    def open(self) -> int:
        """Returns a descriptor, which the caller closes; raises `NetnsError`."""
        if self.failure:
            raise cannot_be_opened(self.path, OSError(self.failure, os.strerror(self.failure)))
        if self.descriptor is not None:
            # A duplicate: the connection owns the original, the command closes this one.
            return checked_netns(os.dup(self.descriptor), self.path)
        return open_netns(self.path)
