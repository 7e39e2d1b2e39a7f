"""Change feed: selects which watcher sees which change. Runs in the worker thread, which orders lists and changes.

A watcher that starts with a list reads it in pages, on request, in the order of uuids. So a list of any length neither
delays the writers nor occupies memory as a whole. Objects may change between two pages. A change of an object that the
list has already passed is delivered as a change; any other one is not, since a later page will show its result. So no
change is missed and none is delivered twice.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from contrail_config.embedded.rows import Row, RowChange, Table
from contrail_config.store import ChangeType, WatchStart

PAGE: Final = 256
"""Objects in one page of a list: about 1 ms of reading."""


ReadPage = Callable[[str, int], list[tuple[str, bytes]]]
"""Reads at most so many objects after a uuid, in the order of uuids: uuid and encoded object of each."""

EncodedChange = tuple[ChangeType, bytes | None]
"""A change with its object still encoded."""


class Subscription:
    """Scope and position of one watcher: a table, how to read it, and optionally one node.

    Pending virtual machines are in scope only with `include_pending`. `listed_to` is the uuid of the last listed
    object: "" before the first one, None when the list is complete.
    """

    def __init__(
        self,
        table: Table,
        read_page: ReadPage,
        *,
        start: WatchStart,
        node: str | None = None,
        include_pending: bool = False,
    ) -> None:
        self.table = table
        self.read_page = read_page
        self.node = node
        self.include_pending = include_pending
        self.listed_to = "" if start is WatchStart.LIST else None

    def item_for(self, change: RowChange) -> EncodedChange | None:
        """Returns the change as this watcher sees it, None if it does not.

        For a watcher of one node, a virtual machine that moves to the node is added, one that leaves it is deleted.
        """
        # An object after `listed_to` will be in a later page, in its state at that time.
        if change.table != self.table or (self.listed_to is not None and change.uuid > self.listed_to):
            return None
        old, new = self._visible(change.old), self._visible(change.new)
        if new is not None:
            return (ChangeType.ADDED if old is None else ChangeType.MODIFIED, new.body)
        return None if old is None else (ChangeType.DELETED, old.body)

    def _visible(self, row: Row | None) -> Row | None:
        if row is None or (row.pending and not self.include_pending):
            return None
        return row if self.node in (None, row.node) else None


class ChangeFeed:
    """All watchers of a store."""

    def __init__(self) -> None:
        self._deliver: dict[Subscription, Callable[[Sequence[EncodedChange]], None]] = {}

    def subscribe(self, subscription: Subscription, deliver: Callable[[Sequence[EncodedChange]], None]) -> None:
        """Adds a watcher, which sees changes from now on. `deliver` is called in the loop."""
        self._deliver[subscription] = deliver

    def unsubscribe(self, subscription: Subscription) -> None:
        """Removes a watcher. Idempotent."""
        self._deliver.pop(subscription, None)

    def route(self, changes: Sequence[RowChange]) -> list[Callable[[], None]]:
        """Returns the calls, to be made in the loop, that deliver to each watcher the changes that it sees."""
        calls: list[Callable[[], None]] = []
        for subscription, deliver in self._deliver.items():
            items = [item for change in changes if (item := subscription.item_for(change)) is not None]
            if items:
                calls.append(partial(deliver, items))
        return calls

    def next_page(self, subscription: Subscription) -> list[EncodedChange]:
        """Returns the next objects of the watcher's list. The last page ends with SYNCED."""
        rows = subscription.read_page(subscription.listed_to or "", PAGE)
        items: list[EncodedChange] = [(ChangeType.ADDED, body) for _, body in rows]
        if len(rows) == PAGE:
            subscription.listed_to = rows[-1][0]
        else:
            subscription.listed_to = None
            items.append((ChangeType.SYNCED, None))
        return items
