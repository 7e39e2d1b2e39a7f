"""Lock of a network on this node: flock(2) on its namespace, so that it needs no file and ends with its owner.

Whoever changes the network as a whole holds it alone; ADDs, which add their own ports, share it. A namespace may be
removed and created again while a process waits, so a lock counts only if the namespace is still that of the network.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from cni_contrail.datapath.namespaces import Namespaces, name_of, try_lock
from cni_contrail.deadline import Deadline
from cni_contrail.link.errors import NotReadyError

_TIMEOUT = 5.0  # seconds; each owner needs milliseconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02


@contextlib.contextmanager
def locked_network(namespaces: Namespaces, vni: int) -> Iterator[int]:
    """Holds the network alone and yields a descriptor of its namespace, which is created if needed.

    Raises NetnsError, or NotReadyError if others hold it for over 5 s.
    """
    netns = acquire(namespaces, vni, fcntl.LOCK_EX)
    try:
        yield netns
    finally:
        os.close(netns)


def acquire(namespaces: Namespaces, vni: int, operation: int) -> int:
    """Locks the network (LOCK_SH or LOCK_EX) and returns a descriptor of its namespace; closing it ends the lock.

    The namespace is created if needed. Raises NetnsError, or NotReadyError after 5 s.
    """
    for _ in Deadline(_TIMEOUT).attempts(_FIRST_PAUSE, _LONGEST_PAUSE):
        netns = namespaces.open(vni)
        if try_lock(netns, operation) and namespaces.is_current(vni, netns):
            return netns
        os.close(netns)
    raise NotReadyError(f"network namespace {name_of(vni)}: locked by another process for over {_TIMEOUT:g} s")
