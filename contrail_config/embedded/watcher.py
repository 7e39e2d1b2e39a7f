"""Watcher: asynchronous iterator of changes, in the event loop.

Changes are queued here, still encoded, until they are consumed, so a slow watcher delays nobody. The queue is bounded:
a watcher that is so far behind is stuck, and would take more and more memory. It ends with an error, since skipping
changes would break the guarantee that each is seen once. Its user can start a new watch, which begins with a list.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic

from contrail_config.embedded.change_feed import EncodedChange
from contrail_config.errors import StoreUnavailableError
from contrail_config.store import Change, ChangeType, T_co

MAX_BEHIND: Final = 65_536
"""Changes that may be queued: half a minute of the fastest writing, about 100 MB of virtual machines."""

PushPage = Callable[[Sequence[EncodedChange], Exception | None], None]
"""Receives a page of the list, or the error that occurred while reading it."""


class Watcher(Generic[T_co]):
    """Asynchronous iterator of changes. `request_page` reads the next page of the list and passes it to its argument.

    Raises StoreUnavailableError when more than MAX_BEHIND changes are queued.
    """

    def __init__(
        self, decode: Callable[[bytes], T_co], request_page: Callable[[PushPage], None], *, listing: bool
    ) -> None:
        self._decode: Callable[[bytes], T_co] = decode
        self._request_page = request_page
        self._listing = listing
        self._page_requested = False
        self._queue: deque[EncodedChange] = deque()
        self._changed = asyncio.Event()
        self._ended = False
        self._error: Exception | None = None

    def __aiter__(self) -> "Watcher[T_co]":
        return self

    async def __anext__(self) -> Change[T_co]:
        while not self._queue:
            if self._ended:
                raise self._error or StopAsyncIteration
            if self._listing and not self._page_requested:
                self._page_requested = True
                self._request_page(self.push_page)
            # No wakeup is lost: pushes happen in this loop, and there is no await between the check and the wait.
            self._changed.clear()
            await self._changed.wait()
        kind, body = self._queue.popleft()
        return Change(type=kind, object=None if body is None else self._decode(body))

    def push(self, items: Sequence[EncodedChange]) -> None:
        """Queues changes, unless the watcher has ended. Ends it with an error if it is too far behind."""
        if len(self._queue) + len(items) > MAX_BEHIND:
            self.abort(StoreUnavailableError(f"watch: more than {MAX_BEHIND} changes behind"))
        self._append(items)

    def push_page(self, items: Sequence[EncodedChange], error: Exception | None) -> None:
        """Queues the requested page, or ends with the error."""
        if error is not None:
            self.end(error)
            return
        self._page_requested = False
        self._listing = items[-1][0] is not ChangeType.SYNCED
        self._append(items)

    def end(self, error: Exception | None = None) -> None:
        """Ends the iteration after the queued changes, with an error if one is given. The first call wins."""
        if not self._ended:
            self._ended = True
            self._error = error
            self._changed.set()

    def abort(self, error: Exception | None = None) -> None:
        """Drops the queued changes and ends the iteration."""
        self._queue.clear()
        self.end(error)

    def _append(self, items: Sequence[EncodedChange]) -> None:
        if not self._ended:
            self._queue.extend(items)
            self._changed.set()
