"""Rate limits of events: one for all, and a lower one for each namespace.

A tenant who makes events, with pods that fail all the time, uses up the limit of the own namespace only: warnings about
the pods of others are still recorded. One with several namespaces can use up the limit of all; then there is a reserve
for namespaces that have had few events lately.
"""

import time
from collections.abc import Callable

from contrail_service.token_bucket import TokenBucket
from manager.namespace_buckets import NamespaceBuckets

RATE, BURST = 50.0, 1000.0
"""Events per second, and at once, of all namespaces."""

NAMESPACE_RATE, NAMESPACE_BURST = 10.0, 200.0
"""The same for each namespace."""

QUIET_RATE, QUIET_BURST = 1.0, 10
"""Events per second, and at once, that a namespace may have and still use the reserve."""

RESERVE_RATE, RESERVE_BURST = 10.0, 1000.0
"""The reserve of all quiet namespaces."""


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
        self._reserve = TokenBucket(rate=RESERVE_RATE, burst=RESERVE_BURST, clock=clock)
        self._quiet = NamespaceBuckets(rate=QUIET_RATE, burst=QUIET_BURST, clock=clock)
        self._namespaces = NamespaceBuckets(rate=rate, burst=burst, clock=clock)

    def exceeded_by(self, namespace: str) -> str | None:
        """Counts an event, and returns which limit it exceeds; None if it may be recorded.

        `namespace` is empty for an object without one.
        """
        if not self._namespaces.of(namespace).take():  # first, so that it takes nothing from the others
            place = f"in namespace {namespace}" if namespace else "of objects without a namespace"
            return f"more than {self._namespaces.rate:g} events per second {place}"
        quiet = self._quiet.of(namespace)
        quiet.take()
        # Half of it, since one that is noisy takes each token as soon as it is there.
        has_reserve = quiet.level >= QUIET_BURST / 2
        if not self._total.take() and not (has_reserve and self._reserve.take()):
            return f"more than {self._total.rate:g} events per second"
        return None
