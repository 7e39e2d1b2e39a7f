"""Pacing of NADs with long lists, so that parsing those of one tenant does not delay the pods of others.

All objects are parsed in one event loop. A NAD with a thousand subnets and exclusions takes tenths of a second there,
in the store and in its watches together, and a tenant may create hundreds of them, or change one all the time. So list
items beyond what networks usually have are limited per namespace and second: NADs above the limit are reconciled
later. Items are counted by their commas, without parsing.
"""

import time
from collections.abc import Callable
from typing import Final

from manager.namespace_buckets import NamespaceBuckets
from manager.source import Nad

FREE_ITEMS: Final = 64
"""Items of a NAD that are not counted."""

RATE, BURST = 512.0, 2048.0
"""Counted items per second, and at once, of each namespace: about a twentieth of a processor."""


class NadPacing:
    """Delays of NADs. `clock` returns monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets = NamespaceBuckets(rate=RATE, burst=BURST, clock=clock)

    def delay(self, nad: Nad) -> float:
        """Counts a reconciliation of the NAD, and returns the seconds until it may begin."""
        items = counted_items(nad)
        return self._buckets.of(nad.namespace).reserve(items) if items else 0.0


def counted_items(nad: Nad) -> int:
    """Returns the number of the NAD's list items beyond the free ones."""
    texts = (*nad.annotations.values(), nad.config or "")
    return max(0, sum(text.count(",") for text in texts) - FREE_ITEMS)
