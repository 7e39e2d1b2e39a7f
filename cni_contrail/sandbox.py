"""The sandbox of a call: where CNI_NETNS says it is, and how it is opened.

The path stands in records and messages, and it means something only to who shares the mounts and processes of the
runtime. Who does not is handed the opened sandbox, or why it could not be opened.
"""

from __future__ import annotations

import os

from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import cannot_be_opened, checked_netns, open_netns


class Sandbox(NamedTuple):
    """`path` is CNI_NETNS; `descriptor` was opened by the caller, whose it is; `failure`: why it was not, an errno.

    With neither it is opened by its path.
    """

    path: str
    descriptor: int | None = None
    failure: int = 0

    def open(self) -> int:
        """Returns a descriptor, which is the caller's to close; raises `NetnsError`."""
        if self.failure:
            raise cannot_be_opened(self.path, OSError(self.failure, os.strerror(self.failure)))
        if self.descriptor is not None:
            return checked_netns(os.dup(self.descriptor), self.path)
        return open_netns(self.path)
