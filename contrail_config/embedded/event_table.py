"""Event log: counts repeated events, keeps at most 50 per object, and none for more than a day.

Runs in the worker thread.
"""

import sqlite3
from collections.abc import Callable
from typing import Final

from contrail_config.objects import Event, EventType

_MAX_PER_OBJECT: Final = 50

_MAX_AGE: Final = 24 * 3600.0
"""Seconds after its last occurrence at which an event expires."""

_PRUNE_INTERVAL: Final = 3600.0
"""Seconds between two searches for expired events, so that not every write searches the log."""

_INSERT: Final = """
    INSERT INTO events (kind, namespace, name, uid, type, reason, message, count, first_seen, last_seen)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_FIND: Final = """
    SELECT kind, namespace, name, uid, type, reason, message, count, first_seen, last_seen FROM events
    WHERE kind = ifnull(:kind, kind) AND namespace = ifnull(:namespace, namespace) AND name = ifnull(:name, name)
    ORDER BY last_seen, id
"""

_COUNT: Final = """
    UPDATE events SET count = count + ?, first_seen = min(first_seen, ?), last_seen = max(last_seen, ?)
    WHERE kind = ? AND namespace = ? AND name = ? AND uid = ? AND type = ? AND reason = ? AND message = ?
"""

_TRIM: Final = """
    DELETE FROM events WHERE id IN (
        SELECT id FROM events WHERE kind = ? AND namespace = ? AND name = ? AND uid = ?
        ORDER BY last_seen DESC, id DESC LIMIT -1 OFFSET ?
    )
"""
# LIMIT -1 means no limit: SQLite has no OFFSET without LIMIT.


class EventTable:
    """Events of pods, NADs and manifests. `clock` returns seconds since the epoch."""

    def __init__(self, db: sqlite3.Connection, *, clock: Callable[[], float]) -> None:
        self._db = db
        self._clock = clock
        self._next_prune = 0.0

    def record(self, event: Event) -> None:
        """Increases the count of an equal event, or adds the event and trims those of its object."""
        self._prune()
        subject = (event.kind, event.namespace, event.name, event.uid)
        content = (event.type, event.reason, event.message)
        counted = self._db.execute(_COUNT, (event.count, event.first_seen, event.last_seen, *subject, *content))
        if counted.rowcount == 0:
            self._db.execute(_INSERT, (*subject, *content, event.count, event.first_seen, event.last_seen))
            self._db.execute(_TRIM, (*subject, _MAX_PER_OBJECT))

    def find(self, *, kind: str | None, namespace: str | None, name: str | None) -> list[Event]:
        """Returns the matching events (None matches all), oldest `last_seen` first."""
        rows = self._db.execute(_FIND, {"kind": kind, "namespace": namespace, "name": name})
        return [_event(row) for row in rows]

    def _prune(self) -> None:
        now = self._clock()
        if now >= self._next_prune:
            self._db.execute("DELETE FROM events WHERE last_seen < ?", (now - _MAX_AGE,))
            self._next_prune = now + _PRUNE_INTERVAL


def _event(row: tuple[str, str, str, str, str, str, str, int, float, float]) -> Event:
    kind, namespace, name, uid, event_type, reason, message, count, first_seen, last_seen = row
    return Event(
        kind=kind,
        namespace=namespace,
        name=name,
        uid=uid,
        type=EventType(event_type),
        reason=reason,
        message=message,
        count=count,
        first_seen=first_seen,
        last_seen=last_seen,
    )
