"""One watch: the events after a resourceVersion, until the server or the network ends it."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from contrail_config.kube.decoding import UndecodableObject, decode, decode_object
from contrail_config.kube.resource import KubeObject, Metadata, Resource
from contrail_config.kube.selector import Selector
from contrail_config.kube.status import read_status, status_error
from contrail_config.kube.transport import ApiRequest, Transport

T = TypeVar("T", bound=KubeObject)


class WatchType(StrEnum):
    """Type of an event. BOOKMARK: all events up to a resourceVersion were sent."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One event; the object of a bookmark is None."""

    type: WatchType
    metadata: Metadata
    object: T | UndecodableObject | None


class _Line(msgspec.Struct, frozen=True):
    type: WatchType
    object: msgspec.Raw


class _Bookmark(msgspec.Struct, frozen=True):
    metadata: Metadata


@contextlib.asynccontextmanager
async def open_watch(
    transport: Transport,
    resource: Resource[T],
    selector: Selector,
    *,
    since: str,
    seconds: float,
    heard: Callable[[], None],
) -> AsyncIterator[AsyncIterator[WatchEvent[T]]]:
    """Yields the events after `since`; the server ends the watch after about `seconds`.

    `heard` is called when the server has accepted the watch, and for each event, bookmarks included.

    Raises KubeError, as does the iterator.
    """
    query = selector.query() | {
        "watch": "true",
        "resourceVersion": since,
        "allowWatchBookmarks": "true",  # otherwise a watch of rarely changing objects resumes from an expired version
        "timeoutSeconds": str(int(seconds)),
    }
    request = ApiRequest("GET", resource.path(selector.namespace), query)
    async with (
        transport.stream(request) as chunks,
        contextlib.aclosing(_events(request, chunks, resource, heard)) as events,
    ):
        heard()
        yield events


async def _events(
    request: ApiRequest, chunks: AsyncIterator[bytes], resource: Resource[T], heard: Callable[[], None]
) -> AsyncGenerator[WatchEvent[T], None]:
    async with contextlib.aclosing(split_lines(chunks)) as lines:
        async for line in lines:
            heard()
            yield _decode_event(request, line, resource)


def _decode_event(request: ApiRequest, line: bytes, resource: Resource[T]) -> WatchEvent[T]:
    event = decode(line, _Line, request=str(request))
    if event.type is WatchType.ERROR:
        status = read_status(event.object)  # the HTTP status was 200; mostly 410 here
        raise status_error(f"{request} (watch)", status.code, status, {})
    if event.type is WatchType.BOOKMARK:
        return WatchEvent(event.type, decode(event.object, _Bookmark, request=str(request)).metadata, None)
    found = decode_object(event.object, resource)
    return WatchEvent(event.type, found.metadata, found)


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Yields the complete lines of a stream, of any length, without line ends; skips empty ones and a cut last one.

    aiohttp's own line iterator fails on lines longer than its buffer (512 KiB by default), and an object may be longer.
    Each byte is scanned once, however many chunks a line spans.
    """
    unfinished: list[bytes] = []
    async for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            unfinished.append(line)
            joined = b"".join(unfinished)
            unfinished.clear()
            if joined:
                yield joined
        if rest:
            unfinished.append(rest)
