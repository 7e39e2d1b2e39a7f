"""Listeners of health, metrics and the manager's API: the bounds of all others."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from contrail_service import connections
from contrail_service.listen import ListenAddress
from contrail_service.serving import pages_runner, serve_tcp
from tests.support.raw_http import connected, exchanged, request

LIMIT = 8


@pytest.fixture
async def address(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ListenAddress]:
    """Of a listener with few connections."""
    monkeypatch.setattr(connections, "connection_limit", lambda: LIMIT)
    runner = pages_runner([web.get("/healthz", healthy)])
    await runner.setup()
    try:
        yield await serve_tcp(runner, ListenAddress("127.0.0.1", 0))
    finally:
        await runner.cleanup()


async def healthy(_request: web.Request) -> web.Response:
    return web.json_response({})


@pytest.mark.parametrize("head", [b"", b"GET /healthz HTTP/1.1\r\nHost: age"])
async def test_half_open_heads_take_each_others_places(address: ListenAddress, head: bytes) -> None:
    async with contextlib.AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(connected(address)) for _ in range(LIMIT)]
        for each in opened:
            await each.send(head)
        for _ in range(LIMIT):
            assert (await exchanged(address, request("GET", "/healthz"))).status == 200
        assert await opened[0].is_closed()
