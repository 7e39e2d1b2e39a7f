"""One watch: what the server says changed since a resourceVersion, until it or the network ends it."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from contrail_config.kube.decoding import UndecodableObject, decode, decode_object
from contrail_config.kube.lines import split_lines
from contrail_config.kube.resource import KubeObject, Metadata, Resource
from contrail_config.kube.selector import Selector
from contrail_config.kube.status import error_of, read_status
from contrail_config.kube.transport import Call, Transport

T = TypeVar("T", bound=KubeObject)


class WatchType(StrEnum):
    """What the server tells; BOOKMARK: no more than that it has told all up to a resourceVersion."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One event; a bookmark has no object."""

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
    transport: Transport, resource: Resource[T], selection: Selector, *, since: str, seconds: float
) -> AsyncIterator[AsyncIterator[WatchEvent[T]]]:
    """Gives the events after `since`; after about `seconds` the server ends it. Raises KubeError, as the events do."""
    query = selection.query() | {
        "watch": "true",
        "resourceVersion": since,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(int(seconds)),
    }
    call = Call("GET", resource.path(selection.namespace), query)
    async with transport.stream(call) as pieces, contextlib.aclosing(_events(call, pieces, resource)) as events:
        yield events


async def _events(
    call: Call, pieces: AsyncIterator[bytes], resource: Resource[T]
) -> AsyncGenerator[WatchEvent[T], None]:
    async with contextlib.aclosing(split_lines(pieces)) as lines:
        async for line in lines:
            yield _read(call, line, resource)


def _read(call: Call, line: bytes, resource: Resource[T]) -> WatchEvent[T]:
    event = decode(line, _Line, asked=str(call))
    if event.type is WatchType.ERROR:
        status = read_status(event.object)
        raise error_of(f"{call} (watch)", status.code, status, {})
    if event.type is WatchType.BOOKMARK:
        return WatchEvent(event.type, decode(event.object, _Bookmark, asked=str(call)).metadata, None)
    found = decode_object(event.object, resource.type)
    return WatchEvent(event.type, found.metadata, found)
