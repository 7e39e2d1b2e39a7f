"""Event log: counts repeated events, keeps at most 50 per object, and none for more than a day.

Runs in the worker thread.
"""

import sqlite3
from collections.abc import Callable
from typing import Final

from contrail_config.errors import InvalidTokenError
from contrail_config.objects import Event, EventType
from contrail_config.store import EventPage

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

_PAGE: Final = """
    SELECT kind, namespace, name, uid, type, reason, message, count, first_seen, last_seen, id FROM events
    WHERE namespace = ifnull(:namespace, namespace) AND (last_seen, id) > (:seen, :id)
    ORDER BY last_seen, id LIMIT :limit
"""

_COUNT: Final = """
    UPDATE events SET count = count + ?, first_seen = min(first_seen, ?), last_seen = max(last_seen, ?)
    WHERE kind = ? AND namespace = ? AND name = ? AND uid = ? AND type = ? AND reason = ? AND message = ?
    RETURNING kind, namespace, name, uid, type, reason, message, count, first_seen, last_seen
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

    def record(self, event: Event) -> Event:
        """Increases the count of an equal event, or adds the event and trims those of its object.

        Returns the event as it is then.
        """
        self._prune()
        subject = (event.kind, event.namespace, event.name, event.uid)
        content = (event.type, event.reason, event.message)
        counted = self._db.execute(_COUNT, (event.count, event.first_seen, event.last_seen, *subject, *content))
        if rows := counted.fetchall():
            return _event(rows[0])
        self._db.execute(_INSERT, (*subject, *content, event.count, event.first_seen, event.last_seen))
        self._db.execute(_TRIM, (*subject, _MAX_PER_OBJECT))
        return event

    def find(self, *, kind: str | None, namespace: str | None, name: str | None) -> list[Event]:
        """Returns the matching events (None matches all), oldest `last_seen` first."""
        rows = self._db.execute(_FIND, {"kind": kind, "namespace": namespace, "name": name})
        return [_event(row) for row in rows]

    def page(self, *, namespace: str | None, limit: int, token: str | None) -> EventPage:
        """Returns the events that follow the token, oldest `last_seen` first. Raises InvalidTokenError."""
        seen, last = _position(token)
        rows = self._db.execute(_PAGE, {"namespace": namespace, "seen": seen, "id": last, "limit": limit}).fetchall()
        following = f"{rows[-1][-2]!r} {rows[-1][-1]}" if len(rows) == limit else None
        return EventPage([_event(row[:-1]) for row in rows], following)

    def _prune(self) -> None:
        now = self._clock()
        if now >= self._next_prune:
            self._db.execute("DELETE FROM events WHERE last_seen < ?", (now - _MAX_AGE,))
            self._next_prune = now + _PRUNE_INTERVAL


def _position(token: str | None) -> tuple[float, int]:
    """Returns `last_seen` and id of the last event before a page."""
    if token is None:
        return float("-inf"), 0
    try:
        seen, number = token.split()
        return float(seen), int(number)
    except ValueError as error:
        raise InvalidTokenError from error


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
