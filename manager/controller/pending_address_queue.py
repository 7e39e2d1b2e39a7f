"""Lines of pods before networks without a free address: first come, first served.

Only the head of a line tries to get an address; a pod that comes while there is a line joins its end without trying, so
a latecomer never takes the address that a released one leaves. A pod stands in one line at a time, since it gets all
its addresses or none; where the next network of it is exhausted too, it goes to that line, in the place that its first
arrival gives it.
"""

import bisect
import itertools
from collections.abc import Callable, Iterable


class PendingAddressQueue:
    """Lines by network uuid; `retry` has a pod, which came to be the head of its line, try again."""

    def __init__(self, retry: Callable[[str], None]) -> None:
        self._retry = retry
        self._lines: dict[str, list[tuple[int, str]]] = {}  # in the order of their tickets
        self._places: dict[str, str] = {}  # pod to network
        self._tickets: dict[str, int] = {}
        self._next_ticket = itertools.count()

    def before(self, pod: str, networks: Iterable[str]) -> str | None:
        """The first of the networks in whose line another pod comes before this one; None if it may try."""
        ticket = self._tickets.get(pod)
        for network in networks:
            line = self._lines.get(network)
            if line is not None and line[0][1] != pod and (ticket is None or line[0][0] < ticket):
                return network
        return None

    def join(self, network: str, pod: str) -> None:
        """Puts the pod into the network's line; it leaves any other."""
        if self._places.get(pod) == network:
            return
        self._step_out(pod)
        ticket = self._tickets.setdefault(pod, next(self._next_ticket))
        bisect.insort(self._lines.setdefault(network, []), (ticket, pod))
        self._places[pod] = network

    def leave(self, pod: str) -> None:
        """Takes the pod out of its line, for whatever reason; one that stands in none is no error."""
        self._step_out(pod)
        self._tickets.pop(pod, None)

    def try_again(self, network: str) -> None:
        """Has the head of the network's line try again, if there is a line: an address was released."""
        if line := self._lines.get(network):
            self._retry(line[0][1])

    def _step_out(self, pod: str) -> None:
        network = self._places.pop(pod, None)
        if network is None:
            return
        line = self._lines[network]
        position = bisect.bisect_left(line, (self._tickets[pod], pod))
        del line[position]
        if not line:
            del self._lines[network]
        elif position == 0:
            self._retry(line[0][1])
