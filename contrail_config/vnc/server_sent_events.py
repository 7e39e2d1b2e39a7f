"""Server-sent events: the frames of a watch."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec

from contrail_config.vnc.errors import VncError, VncUnavailableError

MAX_FRAME = 256 * 1024 * 1024
"""Bytes of one frame: the initial state of a type is one."""


class ServerEvent(NamedTuple):
    """An event: `init` with all objects of a type, `create`, `update` or `delete` with one."""

    event: str
    kind: str
    objects: list[dict[str, Any]]


async def read_events(chunks: AsyncIterator[bytes], *, where: str) -> AsyncIterator[ServerEvent]:
    """Yields the events in a stream; keep-alives are left out. Raises VncError, also for a `stop` event."""
    async for frame in _frames(chunks, where):
        event, data = _fields(frame)
        if event == "stop":
            raise VncUnavailableError(f"{where}: the server ended the watch: {data.decode('utf-8', 'replace')}")
        if event:
            yield _decoded(event, data, where)


async def _frames(chunks: AsyncIterator[bytes], where: str) -> AsyncIterator[bytes]:
    """Yields what is between empty lines."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        # only the seam of two chunks can hide a separator, so a long frame is not searched again and again
        joined = (parts.pop() if parts else b"") + chunk
        *frames, rest = joined.split(b"\n\n")
        for position, frame in enumerate(frames):
            yield b"".join(parts) + frame if position == 0 else frame
            parts, size = [], 0
        parts += [rest[:-1], rest[-1:]]
        size += len(rest)
        if size > MAX_FRAME:
            raise VncError(f"{where}: an event of more than {MAX_FRAME} bytes")


def _fields(frame: bytes) -> tuple[str, bytes]:
    event, data = "", b""
    for line in frame.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"event":
            event = value.strip().decode("ascii", "replace")
        elif name == b"data":
            data += value.strip()
    return event, data


def _decoded(event: str, data: bytes, where: str) -> ServerEvent:
    try:
        ((name, content),) = msgspec.json.decode(data, type=dict[str, Any]).items()
        if event != "init":
            return ServerEvent(event, name, [content])
        kind = name.removesuffix("s")
        return ServerEvent(event, kind, [item[kind] for item in content])
    except (msgspec.DecodeError, ValueError, KeyError, TypeError) as error:
        raise VncError(f"{where}: malformed event {event!r}: {error}") from error
