"""In-memory storage like etcd's: objects, a global revision per change, and a history that can be compacted.

Objects are never changed in place, so lists and events keep the state of the moment when they were created.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.fake_apiserver.kinds import Kind

Object = dict[str, Any]
Key = tuple[str, str]
"""namespace, name"""


class Record(NamedTuple):
    """A change. `before` is None for a new object; `after` has the revision, also of a deletion."""

    revision: int
    collection: tuple[str, str]
    before: Object | None
    after: Object
    deleted: bool


class Storage:
    """Collections of objects; each change sets and replaces `changed`, and calls the `observers`."""

    def __init__(self) -> None:
        self.revision = self.floor = 1000  # changes up to the floor are compacted
        self.history: list[Record] = []
        self.changed = asyncio.Event()
        self.observers: list[Callable[[Record], None]] = []
        self._collections: dict[tuple[str, str], dict[Key, Object]] = {}

    def objects(self, kind: Kind) -> dict[Key, Object]:
        return self._collections.setdefault(kind.collection, {})

    def put(self, kind: Kind, item: Object) -> Object:
        """Stores an object with the next revision and returns the stored object."""
        return self._change(kind, item, deleted=False)

    def remove(self, kind: Kind, item: Object) -> Object:
        """Deletes an object and returns its final state."""
        return self._change(kind, item, deleted=True)

    def since(self, revision: int, kind: Kind) -> list[Record]:
        """The changes of a kind after a revision."""
        first = len(self.history)
        while first and self.history[first - 1].revision > revision:
            first -= 1
        return [record for record in self.history[first:] if record.collection == kind.collection]

    def compact(self) -> None:
        """Compacts the history up to now."""
        self.floor = self.revision
        self.history.clear()

    def empty(self) -> None:
        """Removes everything and resets the revision, like a new etcd."""
        self.revision = self.floor = 1
        self.history.clear()
        self._collections.clear()
        self.notify()

    def notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def _change(self, kind: Kind, item: Object, *, deleted: bool) -> Object:
        self.revision += 1
        metadata = {**item["metadata"], "resourceVersion": str(self.revision)}
        after = {**item, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        key = metadata.get("namespace", ""), metadata["name"]
        before = self.objects(kind).pop(key, None)
        if not deleted:
            self.objects(kind)[key] = after
        record = Record(self.revision, kind.collection, before, after, deleted)
        self.history.append(record)
        for observe in self.observers:
            observe(record)
        self.notify()
        return after
