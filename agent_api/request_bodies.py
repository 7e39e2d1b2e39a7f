"""Reads the bodies of requests within bounds of size, time and number, and decodes them.

Upstream answers 500 to what it cannot parse, and takes a wrong uuid for the nil one; its clients only ask whether the
status is 200. Here every wrong value is one error (400) that names its key, in an array with its position
(`[1].vmi-uuid: ...`), and nothing is done of a body that is wrong in part.

A small body is always read. Of large ones only so many are held at once, from their reading until what they ask for
is done, so that the memory of all bodies has a bound whatever the clients send.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TypeVar

import msgspec
from aiohttp import web
from aiohttp.http import HttpProcessingError

from agent_api.errors import BadRequestError, OverloadedError
from agent_api.values import key_of, wrong_value
from contrail_yaml.duplicate_keys import unique_keys
from contrail_yaml.errors import DuplicateKeyError

LARGEST_BODY = 1024 * 1024
"""Bytes; a larger one is answered with 413."""

DEADLINE = 10.0
"""Seconds in which a body must be here; a slower one is answered with 408."""

SMALL_BODY = 16 * 1024
"""Bytes; of larger ones no more than `MOST_LARGE` are held at once."""

MOST_LARGE = 32

MALFORMED = (HttpProcessingError, web.RequestPayloadError)
"""What aiohttp raises where a client does not send HTTP."""

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)


class RequestBodyReader:
    """Reads bodies; `deadline` is in seconds, `most_large` the number of large ones held at once."""

    def __init__(self, *, deadline: float = DEADLINE, most_large: int = MOST_LARGE) -> None:
        self._deadline = deadline
        self._most_large = most_large
        self._large = 0

    @contextlib.asynccontextmanager
    async def of(self, request: web.Request) -> AsyncIterator[bytes]:
        """Reads the whole body; a large one counts as held as long as the context lasts.

        Raises an HTTP error with status 408 or 413, BadRequestError, OverloadedError.
        """
        body = bytearray()
        with contextlib.ExitStack() as held:
            async with self._in_time():
                await _read_until(request, body, size=SMALL_BODY)
                if len(body) > SMALL_BODY:
                    held.enter_context(self._one_more_large())
                    await _read_until(request, body, size=LARGEST_BODY)
            if len(body) > LARGEST_BODY:
                raise web.HTTPRequestEntityTooLarge(LARGEST_BODY, text=f"the body has more than {LARGEST_BODY} bytes")
            yield bytes(body)

    @contextlib.asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._deadline):
                yield
        except TimeoutError as error:
            raise web.HTTPRequestTimeout(text=f"the body was not here within {self._deadline:g} s") from error
        except MALFORMED as error:
            raise BadRequestError("the body is not sent as HTTP demands") from error

    @contextlib.contextmanager
    def _one_more_large(self) -> Iterator[None]:
        if self._large >= self._most_large:
            raise OverloadedError(f"{self._large} large bodies are held already; try again")
        self._large += 1
        try:
            yield
        finally:
            self._large -= 1


async def _read_until(request: web.Request, body: bytearray, *, size: int) -> None:
    """Reads until the body ends or is larger than `size`."""
    while len(body) <= size and (chunk := await request.content.readany()):
        body += chunk


def decode_body(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Returns what the body holds, its texts not checked yet. Raises BadRequestError."""
    try:
        decoded = decoder.decode(body)
        _unique_keys.decode(body.decode())
    except msgspec.ValidationError as error:
        raise BadRequestError(_key_first(str(error))) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error
    except DuplicateKeyError as error:
        raise BadRequestError(str(error)) from error
    except RecursionError as error:
        raise BadRequestError("the body is nested too deeply") from error
    return decoded


def check_items(items: S | Sequence[S], *, unique: str, find_wrong: Callable[[S], str | None] = wrong_value) -> list[S]:
    """Returns one item or an array of them as a list.

    `unique` is the attribute whose value may come once in an array; `find_wrong` says what is wrong with an item.
    Raises BadRequestError.
    """
    if isinstance(items, msgspec.Struct):
        if wrong := find_wrong(items):
            raise BadRequestError(wrong)
        return [items]
    seen: set[str] = set()
    for position, item in enumerate(items):
        if wrong := find_wrong(item):
            raise BadRequestError(f"[{position}].{wrong}")
        value = getattr(item, unique)
        if value in seen:
            raise BadRequestError(f"[{position}].{key_of(item, unique)}: {value} comes twice")
        seen.add(value)
    return list(items)


# msgspec lets the last of several equal keys win; numbers stay text, since only keys are checked
_unique_keys = json.JSONDecoder(object_pairs_hook=unique_keys, parse_int=str, parse_float=str)


def _key_first(message: str) -> str:
    """Turns msgspec's `Expected ... - at `$[0].vm-uuid`` into `[0].vm-uuid: Expected ...`."""
    what, _, path = message.partition(" - at `$")
    return f"{path.strip('`.')}: {what}" if path else what
