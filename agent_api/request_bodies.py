"""Reads request bodies within limits of size, time and number.

A small body is always read. Only a limited number of large ones is held at the same time, from the first byte until
the request is done, so the memory for bodies is bounded whatever clients send.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from aiohttp import web

from agent_api.errors import BadRequestError, OverloadedError
from contrail_service.connections import MALFORMED_REQUEST_ERRORS

MAX_BODY_SIZE = 1024 * 1024
"""Bytes; a larger body is answered with 413."""

BODY_TIMEOUT = 10.0
"""Seconds to receive a body; a slower one is answered with 408."""

SMALL_BODY_SIZE = 16 * 1024
"""Bytes; at most `MAX_LARGE_BODIES` larger bodies are held at the same time."""

MAX_LARGE_BODIES = 32


class RequestBodyReader:
    """Reads bodies; `timeout` is in seconds, `max_large` limits the large bodies held at the same time."""

    def __init__(self, *, timeout: float = BODY_TIMEOUT, max_large: int = MAX_LARGE_BODIES) -> None:
        self._timeout = timeout
        self._max_large = max_large
        self.large_bodies_held = 0

    @contextlib.asynccontextmanager
    async def read(self, request: web.Request) -> AsyncIterator[bytes]:
        """Yields the whole body; a large body occupies its slot until the context is left.

        Raises an HTTP error with status 408 or 413, BadRequestError, OverloadedError.
        """
        body = bytearray()
        with contextlib.ExitStack() as slot:
            # A slot is taken only once the body proves to be large, so slow small bodies cannot occupy slots.
            async with self._time_limit():
                await _read_until(request, body, size=SMALL_BODY_SIZE)
                if len(body) > SMALL_BODY_SIZE:
                    slot.enter_context(self._large_body_slot())
                    await _read_until(request, body, size=MAX_BODY_SIZE)
            if len(body) > MAX_BODY_SIZE:
                raise web.HTTPRequestEntityTooLarge(MAX_BODY_SIZE, text=f"body: larger than {MAX_BODY_SIZE} bytes")
            yield bytes(body)

    @contextlib.asynccontextmanager
    async def _time_limit(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except TimeoutError as error:
            raise web.HTTPRequestTimeout(text=f"body: timed out after {self._timeout:g} s") from error
        except MALFORMED_REQUEST_ERRORS as error:
            raise BadRequestError("body: malformed HTTP") from error

    @contextlib.contextmanager
    def _large_body_slot(self) -> Iterator[None]:
        if self.large_bodies_held >= self._max_large:
            raise OverloadedError(f"too many large bodies: limit is {self._max_large}; retry later")
        self.large_bodies_held += 1
        try:
            yield
        finally:
            self.large_bodies_held -= 1


async def _read_until(request: web.Request, body: bytearray, *, size: int) -> None:
    """Reads until the body ends or is larger than `size` bytes."""
    # What is not read here stays with the client: aiohttp pauses the transport above `read_bufsize` bytes.
    while len(body) <= size and (chunk := await request.content.readany()):
        body += chunk
