"""Token buckets of namespaces: a tenant who exceeds a limit uses up that of the own namespace only.

The buckets that were used last are kept; a namespace that is forgotten begins with a full burst again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

from contrail_service.token_bucket import TokenBucket

MAX_NAMESPACES = 4096


class NamespaceBuckets:
    """One bucket for each namespace, all of the same rate and burst. `clock` returns monotonic seconds."""

    def __init__(self, *, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()  # those used last come last

    def __len__(self) -> int:
        return len(self._buckets)

    def of(self, namespace: str) -> TokenBucket:
        """Returns the bucket of the namespace."""
        bucket = self._buckets.get(namespace)
        if bucket is None:
            bucket = self._buckets[namespace] = TokenBucket(rate=self.rate, burst=self._burst, clock=self._clock)
            if len(self._buckets) > MAX_NAMESPACES:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(namespace)
        return bucket
