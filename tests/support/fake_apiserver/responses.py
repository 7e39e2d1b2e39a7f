"""JSON responses, with the configured faults."""

from collections.abc import Iterator

import msgspec
from aiohttp import web

from tests.support.fake_apiserver.faults import Faults
from tests.support.fake_apiserver.storage import Object


async def answer(
    request: web.Request, status: int, content: Object, faults: Faults, *, retry_after: int | None = None
) -> web.StreamResponse:
    """Sends a JSON response; faults may split or truncate it."""
    body = msgspec.json.encode(content)
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    if faults.piece is None and not faults.cut_responses:
        return web.Response(status=status, body=body, headers=headers)
    response = web.StreamResponse(status=status, headers=headers)
    await response.prepare(request)
    cut = faults.cut_responses.pop(0) if faults.cut_responses else len(body)
    for piece in _pieces(body[:cut], faults.piece):
        await response.write(piece)
    if cut < len(body) and request.transport is not None:
        request.transport.close()
    return response


def _pieces(body: bytes, length: int | None) -> Iterator[bytes]:
    step = length or max(len(body), 1)
    for start in range(0, len(body), step):
        yield body[start : start + step]
