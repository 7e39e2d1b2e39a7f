"""The private attributes of aiohttp that `contrail_service.connections` relies on: their names, and what they mean.

If one of these tests fails after an upgrade of aiohttp, adapt `contrail_service/connections.py` first, then raise the
cap in pyproject.toml. Otherwise the limits on connections silently stop working.
"""

import inspect
import tomllib
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.web_runner import BaseRunner

from tests.agent_api.conftest import StartAgent
from tests.support.raw_http import connected, request
from tests.support.served_agent import until

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
WAITING = request("GET", "/vm-cfg/k8s__default__nobody?wait=30")


def test_the_installed_aiohttp_is_within_the_cap_of_pyproject() -> None:
    dependencies = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    assert [line for line in dependencies if line.startswith("aiohttp")] == ["aiohttp>=3.14,<3.15"]
    assert aiohttp.__version__.startswith("3.14."), (
        "contrail_service/connections.py relies on private parts of aiohttp 3.14"
    )


def test_app_runner_creates_its_server_in_make_server() -> None:
    assert inspect.iscoroutinefunction(web.AppRunner._make_server), "aiohttp changed AppRunner._make_server"
    assert "_make_server" in BaseRunner.__abstractmethods__, "aiohttp changed BaseRunner._make_server"
    assert list(inspect.signature(web.AppRunner._make_server).parameters) == ["self"]


def test_request_handler_has_the_attribute_waiter() -> None:
    assert "_waiter" in web.RequestHandler.__slots__, "aiohttp changed RequestHandler._waiter"


@pytest.mark.parametrize(("data", "waits"), [(b"", True), (WAITING[:20], True), (WAITING, False)])
async def test_waiter_is_a_pending_future_exactly_while_a_connection_has_no_request(
    start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch, data: bytes, *, waits: bool
) -> None:
    handlers: list[web.RequestHandler] = []
    connection_made = web.Server.connection_made

    def record(server: web.Server, handler: web.RequestHandler, transport: object) -> None:
        handlers.append(handler)
        connection_made(server, handler, transport)  # type: ignore[arg-type]

    def is_pending() -> bool:
        waiter = handlers[0]._waiter
        return waiter is not None and not waiter.done()

    served = await start_agent()
    monkeypatch.setattr(web.Server, "connection_made", record)
    async with connected(served.address) as connection:
        await until(lambda: handlers and is_pending())
        await connection.send(data)
        await until(lambda: is_pending() == waits)
        assert is_pending() == waits, "aiohttp changed the meaning of RequestHandler._waiter"
