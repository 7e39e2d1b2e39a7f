"""A watch: streams changes to one client, with the configured faults."""

import asyncio
import contextlib
import math
from typing import NamedTuple

import msgspec
from aiohttp import web

from tests.support.fake_apiserver.faults import Faults
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.selectors import Matches
from tests.support.fake_apiserver.status_errors import StatusError
from tests.support.fake_apiserver.storage import Object, Record, Storage

_LAST_BOOKMARK = 2.0  # seconds before a watch times out


class WatchRequest(NamedTuple):
    """Kind, start revision, duration and bookmark interval (None: no bookmarks) of a watch; times in seconds."""

    kind: Kind
    namespace: str
    matches: Matches
    since: int
    seconds: float
    bookmarks: float | None


class Watch:
    """Sends changes until it times out or `end` or `cut` is called.

    `last_revision` is the last revision sent, `bookmarked` that of the last bookmark; `sent` counts bytes.
    """

    def __init__(
        self, asked: WatchRequest, storage: Storage, faults: Faults, request: web.Request, response: web.StreamResponse
    ) -> None:
        self._asked = asked
        self._storage = storage
        self._faults = faults
        self._request = request
        self._response = response
        self.last_revision = asked.since
        self.bookmarked = 0
        self.sent = 0
        self._left = faults.cuts.pop(0) if faults.cuts else None
        self._ended = asyncio.Event()
        self._failure: StatusError | None = None

    def end(self, failure: StatusError | None = None) -> None:
        """Ends the watch, with the failure as its last event."""
        self._failure = failure
        self._ended.set()

    def cut(self) -> None:
        """Closes the connection."""
        self._left = 0
        self._ended.set()

    def is_of(self, kind: Kind) -> bool:
        return self._asked.kind.collection == kind.collection

    async def run(self) -> None:
        """Sends the changes since the start revision, then new ones."""
        over = _now() + self._asked.seconds
        bookmark = self._next_bookmark(over)
        with contextlib.suppress(_CutError):
            while self._left != 0 and not self._ended.is_set() and _now() < over:
                changed = self._storage.changed
                await self._send_changes()
                await self._wait(changed, min(bookmark, over))
                if _now() >= bookmark:
                    await self._send_bookmark()
                    bookmark = self._next_bookmark(over)
            await self._send_end()

    def _next_bookmark(self, over: float) -> float:
        """Time of the next bookmark: after the interval, and once shortly before the end."""
        if self._asked.bookmarks is None:
            return math.inf
        due, last = _now() + self._asked.bookmarks, over - _LAST_BOOKMARK
        return min(due, last) if last > _now() else due

    async def _send_changes(self) -> None:
        if self._faults.silent:
            return
        records = self._storage.since(self.last_revision, self._asked.kind)
        if records:
            self.last_revision = records[-1].revision
        events = [event for record in records if (event := self._event(record))]
        if self._faults.swapped:
            events.reverse()
        await self._write(b"".join(map(_line, events)) * (2 if self._faults.repeated else 1))

    async def _wait(self, changed: asyncio.Event, until: float) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (changed, self._ended)]
        await asyncio.wait(waits, timeout=max(until - _now(), 0), return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _send_bookmark(self) -> None:
        if self._faults.silent or self._storage.revision < self.last_revision:
            return
        await self._send_changes()
        self.last_revision = self.bookmarked = self._storage.revision
        kind = self._asked.kind
        metadata = {"resourceVersion": str(self.last_revision)}
        await self._write(
            _line(("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}))
        )

    async def _send_end(self) -> None:
        if self._left == 0:
            self._close()
        elif self._failure is not None:
            await self._write(_line(("ERROR", self._failure.status())))
        else:
            await self._send_changes()

    def _event(self, record: Record) -> tuple[str, Object] | None:
        """The event of a change for a client that sees only selected objects."""
        was, is_ = self._sees(record.before), not record.deleted and self._sees(record.after)
        if is_:
            return "MODIFIED" if was else "ADDED", record.after
        if not was or record.before is None:
            return None
        version = record.after["metadata"]["resourceVersion"]
        return "DELETED", {**record.before, "metadata": {**record.before["metadata"], "resourceVersion": version}}

    def _sees(self, item: Object | None) -> bool:
        asked = self._asked
        if item is None or asked.namespace not in ("", item["metadata"].get("namespace", "")):
            return False
        return asked.matches(item)

    async def _write(self, data: bytes) -> None:
        piece = self._faults.piece or len(data)
        for start in range(0, len(data), piece or 1):
            part = data[start : start + piece]
            if self._left is not None:
                part, self._left = part[: self._left], self._left - len(part)
            if part:
                await self._response.write(part)
                self.sent += len(part)
            if self._left is not None and self._left <= 0:
                self._close()
                raise _CutError

    def _close(self) -> None:
        """Closes the connection, unless a cut should look like a regular end."""
        if self._request.transport is not None and not self._faults.cut_cleanly:
            self._request.transport.close()


class _CutError(Exception):
    pass


def _now() -> float:
    return asyncio.get_running_loop().time()


def _line(event: tuple[str, Object]) -> bytes:
    return msgspec.json.encode({"type": event[0], "object": event[1]}) + b"\n"
