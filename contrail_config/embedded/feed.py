"""Which watcher sees which change. Runs in the worker's thread, where lists and changes have one order.

A watcher that starts with a list gets it in pages, each read when it asks, in the order of uuids; so a list of any
length neither holds up the writers nor lies whole in memory. Between two pages objects change: what lies before the
place that the watcher has come to is told as a change, what lies behind it is not, since a later page will show it as
it is then. So nothing is missed and nothing told twice.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from contrail_config.embedded.rows import Row, RowChange, Table
from contrail_config.store import ChangeType, WatchStart

PAGE: Final = 256
"""Objects in one page of a list: about 1 ms of reading."""


ReadPage = Callable[[str, int], list[tuple[str, bytes]]]
"""Reads the objects behind a uuid, in the order of uuids, at most so many: uuid and encoded object of each."""

Item = tuple[ChangeType, bytes | None]
"""A change with its object still encoded."""


class Subscription:
    """What one watcher sees: of which table, read how, of which node if of one.

    `listed_to` is the uuid of the last object that it was shown: "" before the first one, None when it has seen all.
    """

    def __init__(self, table: Table, read_page: ReadPage, *, start: WatchStart, node: str | None = None) -> None:
        self.table = table
        self.read_page = read_page
        self.node = node
        self.listed_to = "" if start is WatchStart.LIST else None

    def view(self, change: RowChange) -> Item | None:
        """The change as this watcher sees it, where a machine that changes its node comes or goes; None: not at all."""
        if change.table != self.table or (self.listed_to is not None and change.uuid > self.listed_to):
            return None
        old, new = self._own(change.old), self._own(change.new)
        if new is not None:
            return (ChangeType.ADDED if old is None else ChangeType.MODIFIED, new.body)
        return None if old is None else (ChangeType.DELETED, old.body)

    def _own(self, row: Row | None) -> Row | None:
        return row if row is not None and self.node in (None, row.node) else None


class Feed:
    """All watchers of a store."""

    def __init__(self) -> None:
        self._deliver: dict[Subscription, Callable[[Sequence[Item]], None]] = {}

    def subscribe(self, subscription: Subscription, deliver: Callable[[Sequence[Item]], None]) -> None:
        """From now on the watcher sees changes; `deliver` is called in the loop."""
        self._deliver[subscription] = deliver

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forgets the watcher; one that is not there is no error."""
        self._deliver.pop(subscription, None)

    def route(self, changes: Sequence[RowChange]) -> list[Callable[[], None]]:
        """Calls, for the loop to make, that bring each watcher what it sees of the changes."""
        calls: list[Callable[[], None]] = []
        for subscription, deliver in self._deliver.items():
            items = [item for change in changes if (item := subscription.view(change)) is not None]
            if items:
                calls.append(partial(deliver, items))
        return calls

    def next_page(self, subscription: Subscription) -> list[Item]:
        """The next objects of the watcher's list; the last page ends with SYNCED."""
        rows = subscription.read_page(subscription.listed_to or "", PAGE)
        items: list[Item] = [(ChangeType.ADDED, body) for _, body in rows]
        if len(rows) == PAGE:
            subscription.listed_to = rows[-1][0]
        else:
            subscription.listed_to = None
            items.append((ChangeType.SYNCED, None))
        return items
