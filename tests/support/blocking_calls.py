"""Rejects blocking calls in the event loop while a test runs, with the library `blockbuster`."""

import contextlib
from collections.abc import Iterator

from blockbuster import BlockBuster, blockbuster_ctx


@contextlib.contextmanager
def blocking_calls_rejected(*packages: str) -> Iterator[BlockBuster]:
    """A call from one of these packages that blocks the event loop raises BlockingError; tests themselves may block."""
    with blockbuster_ctx(list(packages)) as blockbuster:
        # Coverage briefly takes a lock when it first traces a file or a thread.
        for name, function in blockbuster.functions.items():
            if name.endswith("Lock.acquire"):
                function.can_block_in("coverage/collector.py", "lock_data")
        yield blockbuster
