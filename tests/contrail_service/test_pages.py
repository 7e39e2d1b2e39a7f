"""Status pages: `/healthz`, `/readyz` and `/metrics`, and errors as JSON on every page."""

from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from prometheus_client import CollectorRegistry, Counter

from contrail_service.pages import errors_as_json, status_routes

Client = TestClient[web.Request, web.Application]
MakeClient = Callable[[web.Application], Awaitable[Client]]


@pytest.fixture
def reasons() -> list[str]:
    return []


@pytest.fixture
def single_faults() -> list[str]:
    return []


@pytest.fixture
async def client(aiohttp_client: MakeClient, reasons: list[str], single_faults: list[str]) -> Client:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc(3)

    async def broken(_request: web.Request) -> web.Response:
        raise RuntimeError("secret")

    app = web.Application(middlewares=[errors_as_json])
    app.add_routes(
        [*status_routes(lambda: reasons, registry, single_faults=lambda: single_faults), web.get("/broken", broken)]
    )
    return await aiohttp_client(app)


async def test_a_process_that_waits_is_healthy_but_not_ready(client: Client, reasons: list[str]) -> None:
    reasons.append("pods: not listed yet")
    assert (await client.get("/healthz")).status == 200
    answer = await client.get("/readyz")
    assert answer.status == 503
    assert await answer.json() == {"ready": False, "reasons": ["pods: not listed yet"]}


async def test_a_process_that_waits_for_nothing_is_ready(client: Client) -> None:
    answer = await client.get("/readyz")
    assert answer.status == 200
    assert await answer.json() == {"ready": True, "reasons": []}


async def test_a_fault_of_a_single_object_is_a_reason_with_which_the_process_stays_ready(
    client: Client, reasons: list[str], single_faults: list[str]
) -> None:
    single_faults.append("pod p1: not connected")
    answer = await client.get("/readyz")
    assert answer.status == 200
    assert await answer.json() == {"ready": True, "reasons": ["pod p1: not connected"]}
    reasons.append("pods: not listed yet")
    answer = await client.get("/readyz")
    assert answer.status == 503
    assert await answer.json() == {"ready": False, "reasons": ["pods: not listed yet", "pod p1: not connected"]}


async def test_metrics_are_prometheus_text(client: Client) -> None:
    answer = await client.get("/metrics")
    assert answer.content_type == "text/plain"
    assert "things_total 3.0" in await answer.text()


async def test_an_unknown_page_and_a_wrong_method_are_json_errors(client: Client) -> None:
    absent = await client.get("/absent")
    assert (absent.status, await absent.json()) == (404, {"error": "404: Not Found"})
    wrong = await client.post("/healthz")
    assert (wrong.status, await wrong.json()) == (405, {"error": "405: Method Not Allowed"})


async def test_the_response_to_a_bug_has_no_trace(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    answer = await client.get("/broken")
    assert answer.status == 500
    assert await answer.json() == {"error": "internal error, see the log"}
    assert "RuntimeError: secret" in caplog.text
