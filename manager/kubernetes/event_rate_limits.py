"""Rate limits of events: one for all, and a lower one for each namespace.

A tenant who makes events, with pods that fail all the time, uses up the limit of the own namespace only: warnings about
the pods of others are still recorded. The limits of the namespaces that had events last are kept; a namespace that is
forgotten begins with a full burst again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

from contrail_service.token_bucket import TokenBucket

RATE, BURST = 50.0, 1000.0
"""Events per second, and at once, of all namespaces."""

NAMESPACE_RATE, NAMESPACE_BURST = 10.0, 200.0
"""The same for each namespace."""

MAX_NAMESPACES = 4096


class EventRateLimits:
    """Limits for events of one type. `clock` returns monotonic seconds."""

    def __init__(
        self,
        *,
        total: TokenBucket | None = None,
        rate: float = NAMESPACE_RATE,
        burst: float = NAMESPACE_BURST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total or TokenBucket(rate=RATE, burst=BURST, clock=clock)
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._namespaces: OrderedDict[str, TokenBucket] = OrderedDict()  # those with events last come last

    def __len__(self) -> int:
        return len(self._namespaces)

    def exceeded_by(self, namespace: str) -> str | None:
        """Counts an event, and returns which limit it exceeds; None if it may be recorded."""
        if not self._bucket(namespace).take():  # first, so that it takes nothing from the others
            return f"more than {self._rate:g} events per second in namespace {namespace}"
        if not self._total.take():
            return f"more than {self._total.rate:g} events per second"
        return None

    def _bucket(self, namespace: str) -> TokenBucket:
        bucket = self._namespaces.get(namespace)
        if bucket is None:
            bucket = self._namespaces[namespace] = TokenBucket(rate=self._rate, burst=self._burst, clock=self._clock)
            if len(self._namespaces) > MAX_NAMESPACES:
                self._namespaces.popitem(last=False)
        self._namespaces.move_to_end(namespace)
        return bucket
