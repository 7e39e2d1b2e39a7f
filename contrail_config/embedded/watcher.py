"""What a watcher iterates over, in the event loop.

Changes wait here, still encoded, until they are asked for, so a slow watcher holds up nobody. How many may wait is
bounded: one that has fallen so far behind is not slow but stuck, and would take ever more memory. It is ended with an
error, since leaving changes out would break the promise that each is seen once, and may start anew with a list.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic

from contrail_config.embedded.feed import Item
from contrail_config.errors import StoreUnavailableError
from contrail_config.store import Change, ChangeType, T_co

MAX_BEHIND: Final = 65_536
"""Changes that may wait for a watcher: half a minute of the fastest writing, about 100 MB of machines."""

TakePage = Callable[[Sequence[Item], Exception | None], None]
"""Takes a page of the list, or the error that reading it met."""


class Watcher(Generic[T_co]):
    """An asynchronous iterator of changes. `ask_for_page` has the list's next page brought to the call it is given.

    Raises StoreUnavailableError when it has fallen MAX_BEHIND changes behind.
    """

    def __init__(
        self, decode: Callable[[bytes], T_co], ask_for_page: Callable[[TakePage], None], *, listing: bool
    ) -> None:
        self._decode: Callable[[bytes], T_co] = decode
        self._ask_for_page = ask_for_page
        self._listing = listing
        self._asked = False
        self._items: deque[Item] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._error: Exception | None = None

    def __aiter__(self) -> "Watcher[T_co]":
        return self

    async def __anext__(self) -> Change[T_co]:
        while not self._items:
            if self._ended:
                raise self._error or StopAsyncIteration
            if self._listing and not self._asked:
                self._asked = True
                self._ask_for_page(self.take_page)
            self._news.clear()
            await self._news.wait()
        kind, body = self._items.popleft()
        return Change(type=kind, object=None if body is None else self._decode(body))

    def take(self, items: Sequence[Item]) -> None:
        """Appends changes, unless the watcher has ended or falls too far behind by them."""
        if len(self._items) + len(items) > MAX_BEHIND:
            self.cut(StoreUnavailableError(f"the watcher fell more than {MAX_BEHIND} changes behind"))
        self._append(items)

    def take_page(self, items: Sequence[Item], error: Exception | None) -> None:
        """Appends the page that was asked for, or ends with the error that it met."""
        if error is not None:
            self.end(error)
            return
        self._asked = False
        self._listing = items[-1][0] is not ChangeType.SYNCED
        self._append(items)

    def end(self, error: Exception | None = None) -> None:
        """Ends the iteration after what waits, with an error if there is one. Repeatable: the first one counts."""
        if not self._ended:
            self._ended = True
            self._error = error
            self._news.set()

    def cut(self, error: Exception | None = None) -> None:
        """Ends the iteration at once: what waits is dropped."""
        self._items.clear()
        self.end(error)

    def _append(self, items: Sequence[Item]) -> None:
        if not self._ended:
            self._items.extend(items)
            self._news.set()
