"""`GET /v1/watch`: changes of networks, pods, events and nodes as server-sent events.

The stream begins with the whole state: RESET, each object as APPLIED, SYNCED. Then it has changes. They are
level-triggered: a message holds the latest state of its object, and several changes in short succession may be one
message. SYNCED and each change have an id. A client that sends the last one as `Last-Event-ID` gets only what
changed since, or else, if the manager does not know that any more, the whole state again.

Bounds: `MAX_WATCHES` watches, `MAX_READS` pages that are read for them at the same time, `MAX_SECONDS` per stream. A
client that does not read is closed by the listener's own timeout, and one that reads too slowly when the change log
has dropped what it had not been sent. After `HEARTBEAT` seconds without a message the latest id is sent alone, which
shows both sides that the connection works, and lets a client with a narrow filter continue later. The last message,
CLOSED, says why the manager ends a stream; a stream without it was broken.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from contrail_config.errors import StoreError
from manager.api.change_log import ChangeLog, LogClosedError, LogEntry, TooManyWatchesError
from manager.api.change_publisher import encoded
from manager.api.paging import Page, PageRequest, read_token
from manager.api.queries import ItemFilter, ManagerQueries
from manager.api.types import WatchedKind, WatchMessage, WatchMessageType

HEARTBEAT = 15.0
"""Seconds without a message after which the latest id is sent alone."""

MAX_SECONDS = 3600.0
"""Seconds after which a stream ends; its client continues with another one."""

MAX_READS = 4
"""Pages of the initial state that are read at the same time, for all watches."""

_APPLIED = WatchMessageType.APPLIED
_ITEMS_PER_WRITE = 50  # of the state: what is buffered for a client stays small
_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}
_RETRY = b"retry: 1000\n\n"  # milliseconds until a browser connects again
_FELL_BEHIND = "the client reads too slowly: changes that it has not been sent are not kept any longer"
_STOPPING = "the manager is stopping"

Query = Callable[[ItemFilter, PageRequest], Awaitable[Page[Any]]]


class WatchRequest(NamedTuple):
    """What a client watches. `last_event_id`: where it continues, empty if it begins."""

    kinds: tuple[WatchedKind, ...]
    item_filter: ItemFilter
    last_event_id: str

    def matches(self, entry: LogEntry) -> bool:
        """Whether the client is to be sent the change."""
        return entry.kind in self.kinds and self.item_filter.matches(namespace=entry.namespace, name=entry.name)


class _EndOfStreamError(Exception):
    """The stream ends, for the reason in the text."""


class Watches:
    """Serves watches. `heartbeat` and `max_seconds` are in seconds."""

    def __init__(
        self,
        queries: ManagerQueries,
        change_log: ChangeLog,
        *,
        heartbeat: float = HEARTBEAT,
        max_seconds: float = MAX_SECONDS,
    ) -> None:
        self.change_log = change_log
        self.heartbeat = heartbeat
        self.max_seconds = max_seconds
        self._queries: dict[WatchedKind, Query] = {
            WatchedKind.NETWORKS: queries.networks,
            WatchedKind.PODS: queries.pods,
            WatchedKind.EVENTS: queries.events,
            WatchedKind.NODES: queries.nodes,
        }
        self._all_pod_networks = queries.all_pod_networks
        self._reads = asyncio.Semaphore(MAX_READS)

    async def serve(self, request: web.Request, watch: WatchRequest) -> web.StreamResponse:
        """Sends the stream until it ends or the client disconnects."""
        try:
            with self.change_log.watch():
                response = web.StreamResponse(headers=_HEADERS)
                response.force_close()  # the end of a stream is the end of its connection
                await response.prepare(request)
                await _Stream(self, response, watch).send()
                return response
        except (TooManyWatchesError, LogClosedError) as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error

    async def items(self, kind: WatchedKind, item_filter: ItemFilter) -> AsyncIterator[Sequence[Any]]:
        """Yields the items of a list, in parts. Raises StoreError."""
        if kind is WatchedKind.POD_NETWORKS:  # nothing is read for them, and all are sent at once
            for part in self._all_pod_networks(item_filter):
                yield part
                await asyncio.sleep(0)
            return
        after = None
        while True:
            async with self._reads:  # not while the page is sent, which takes as long as the client likes
                page = await self._queries[kind](item_filter, PageRequest(after=after))
            yield page.items
            if page.next_page is None:
                return
            after = read_token(page.next_page)


class _Stream:
    """One client's stream."""

    def __init__(self, watches: Watches, response: web.StreamResponse, watch: WatchRequest) -> None:
        self._watches = watches
        self._log = watches.change_log
        self._response = response
        self._watch = watch
        self._deadline = time.monotonic() + watches.max_seconds
        self._heartbeat_due = 0.0

    async def send(self) -> None:
        """Sends the stream to its end."""
        await self._write(_RETRY)
        try:
            position = self._log.number_of(self._watch.last_event_id)
            if position is None:
                position = self._log.position  # before the state is read, so that no change is missed
                await self._send_state(position)
            while True:
                position = await self._send_changes(position)
        except _EndOfStreamError as end:
            await self._write(_event(WatchMessage(WatchMessageType.CLOSED, message=str(end))))

    async def _send_state(self, position: int) -> None:
        await self._write(_event(WatchMessage(WatchMessageType.RESET)))
        try:
            for kind in self._watch.kinds:
                async for part in self._watches.items(kind, self._watch.item_filter):
                    for start in range(0, len(part), _ITEMS_PER_WRITE):
                        self._check()
                        items = part[start : start + _ITEMS_PER_WRITE]
                        await self._write(b"".join(_encoded_event(encoded(_APPLIED, kind, item)) for item in items))
        except StoreError as error:
            raise _EndOfStreamError(f"the store is not available: {error}") from error
        await self._write(_event(WatchMessage(WatchMessageType.SYNCED), self._log.id_of(position)))

    async def _send_changes(self, position: int) -> int:
        """Sends the next changes after this one, or awaits them; returns the number of the last."""
        self._check()
        entries = self._log.after(position)
        if entries is None:
            raise _EndOfStreamError(_FELL_BEHIND)
        if entries:
            position = entries[-1].number
            chosen = (each for each in entries if self._watch.matches(each))
            await self._write(b"".join(_encoded_event(each.message, self._log.id_of(each.number)) for each in chosen))
        else:
            await self._log.wait(position, seconds=min(self._deadline, self._heartbeat_due) - time.monotonic())
        if time.monotonic() >= self._heartbeat_due:
            await self._write(b"id: %s\n\n" % self._log.id_of(position).encode())
        return position

    def _check(self) -> None:
        if self._log.is_closed:
            raise _EndOfStreamError(_STOPPING)
        if time.monotonic() >= self._deadline:
            raise _EndOfStreamError(f"a stream ends after {self._watches.max_seconds:g} s: continue with its last id")

    async def _write(self, data: bytes) -> None:
        """Returns once the client has read most of what was written before."""
        if data:
            await self._response.write(data)
            self._heartbeat_due = time.monotonic() + self._watches.heartbeat


def _event(message: WatchMessage, event_id: str = "") -> bytes:
    return _encoded_event(msgspec.json.encode(message), event_id)


def _encoded_event(data: bytes, event_id: str = "") -> bytes:
    """Returns a server-sent event; JSON has no line breaks."""
    return b"id: %s\ndata: %s\n\n" % (event_id.encode(), data) if event_id else b"data: %s\n\n" % data
