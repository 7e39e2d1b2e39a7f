"""Pending-address queues: pods that wait for a free address of an exhausted network, first come, first served.

Only the head of a queue tries to allocate. A pod that arrives while there is a queue joins its end without trying, so a
latecomer never takes an address that was released for an earlier pod. A pod is in one queue at a time, since it gets
all its addresses or none; if its next network is exhausted too, it moves to that queue, at the position of its first
arrival.
"""

import bisect
import itertools
from collections.abc import Callable, Iterable


class PendingAddressQueue:
    """One queue per network uuid; `requeue` is called with each pod that becomes the head, so that it tries again."""

    def __init__(self, requeue: Callable[[str], None]) -> None:
        self._requeue = requeue
        self._queues: dict[str, list[tuple[int, str]]] = {}  # ordered by arrival
        self._network_of: dict[str, str] = {}
        self._arrivals: dict[str, int] = {}
        self._next_arrival = itertools.count()

    def __len__(self) -> int:
        return len(self._arrivals)

    def blocked_by(self, pod: str, networks: Iterable[str]) -> str | None:
        """Returns the first network in whose queue another pod is ahead of this one; None if the pod may allocate."""
        arrival = self._arrivals.get(pod)
        for network in networks:
            queue = self._queues.get(network)
            if queue is not None and queue[0][1] != pod and (arrival is None or queue[0][0] < arrival):
                return network
        return None

    def join(self, network: str, pod: str) -> None:
        """Moves the pod to the network's queue."""
        if self._network_of.get(pod) == network:
            return
        self._dequeue(pod)
        # The arrival outlives a move to another queue: only `leave` forgets it.
        arrival = self._arrivals.setdefault(pod, next(self._next_arrival))
        bisect.insort(self._queues.setdefault(network, []), (arrival, pod))
        self._network_of[pod] = network

    def leave(self, pod: str) -> None:
        """Removes the pod and forgets its arrival. Idempotent."""
        self._dequeue(pod)
        self._arrivals.pop(pod, None)

    def requeue_head(self, network: str) -> None:
        """Requeues the head of the network's queue, if there is one: an address was released."""
        if queue := self._queues.get(network):
            self._requeue(queue[0][1])

    def _dequeue(self, pod: str) -> None:
        network = self._network_of.pop(pod, None)
        if network is None:
            return
        queue = self._queues[network]
        position = bisect.bisect_left(queue, (self._arrivals[pod], pod))
        del queue[position]
        if not queue:
            del self._queues[network]
        elif position == 0:
            self._requeue(queue[0][1])  # the new head may allocate now
