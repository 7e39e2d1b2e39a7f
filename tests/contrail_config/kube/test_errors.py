"""Errors: one class per status that callers handle, with the request and the server's message, cut short."""

import asyncio
import json

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.errors import (
    MAX_MESSAGE_LENGTH,
    Cause,
    KubeConflictError,
    KubeError,
    KubeExistsError,
    KubeForbiddenError,
    KubeGoneError,
    KubeInvalidError,
    KubeNotFoundError,
    KubeThrottledError,
    KubeUnauthorizedError,
    KubeUnavailableError,
)
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kube.status import read_status, status_error
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import FakeApiServer


def status(code: int, reason: str = "", message: str = "", **more: object) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": message, **more}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", KubeError),
        (401, "Unauthorized", KubeUnauthorizedError),
        (403, "Forbidden", KubeForbiddenError),
        (404, "NotFound", KubeNotFoundError),
        (409, "Conflict", KubeConflictError),
        (409, "AlreadyExists", KubeExistsError),
        (410, "Expired", KubeGoneError),
        (410, "Gone", KubeGoneError),
        (415, "UnsupportedMediaType", KubeError),
        (422, "Invalid", KubeInvalidError),
        (429, "TooManyRequests", KubeThrottledError),
        (500, "InternalError", KubeUnavailableError),
        (503, "ServiceUnavailable", KubeUnavailableError),
        (504, "Timeout", KubeUnavailableError),
    ],
)
def test_each_status_has_its_error_class(code: int, reason: str, kind: type[KubeError]) -> None:
    error = status_error("GET /x", code, read_status(status(code, reason, "said why")), {})
    assert type(error) is kind
    assert (error.status, error.reason) == (code, reason)
    assert str(error) == f"GET /x: {code} {reason}: said why"


def test_the_details_of_a_status_are_kept() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "too long", "field": "spec.name"}]
    body = status(422, "Invalid", details={"name": "n", "kind": "things", "causes": causes})
    details = status_error("PUT /x", 422, read_status(body), {}).details
    assert details is not None
    assert (details.name, details.kind) == ("n", "things")
    assert details.causes == (Cause("FieldValueInvalid", "too long", "spec.name"),)


@pytest.mark.parametrize(
    ("headers", "details", "expected"),
    [
        ({"Retry-After": "7"}, {}, 7.0),
        ({}, {"retryAfterSeconds": 3}, 3.0),
        ({"Retry-After": "7"}, {"retryAfterSeconds": 3}, 7.0),
        ({"Retry-After": "Sat, 21 Nov 2026 10:00:00 GMT"}, {}, 0.0),
        ({}, {}, 0.0),
    ],
)
def test_retry_after_is_taken_from_header_or_status(
    headers: dict[str, str], details: dict[str, int], expected: float
) -> None:
    body = status(429, "TooManyRequests", details=details)
    assert status_error("GET /x", 429, read_status(body), headers).retry_after == expected


@pytest.mark.parametrize(
    "body", [b"<html>secret</html>", b'{"secret": 1}', b'{"kind": "Secret"}', b"", b"\xff", b'{"kind": "\xff"}']
)
def test_a_body_that_is_not_a_status_is_not_shown(body: bytes) -> None:
    assert str(status_error("GET /x", 502, read_status(body), {})) == "GET /x: 502"


def test_a_long_message_is_cut() -> None:
    error = status_error("GET /x", 500, read_status(status(500, "InternalError", "x" * 10_000)), {})
    assert len(str(error)) == MAX_MESSAGE_LENGTH + 3
    assert str(error).endswith("xxx...")


async def test_the_request_is_named(client: KubeClient) -> None:
    with pytest.raises(KubeNotFoundError, match=r"GET /api/v1/namespaces/default/configmaps/a: 404 NotFound: config"):
        await client.get(CONFIG_MAPS, "a", namespace="default")


async def test_an_error_body_in_several_chunks_is_read_completely(client: KubeClient, server: FakeApiServer) -> None:
    server.faults.piece = 5
    with pytest.raises(KubeNotFoundError, match='configmaps "a" not found'):
        await client.get(CONFIG_MAPS, "a", namespace="default")


async def test_errors_of_a_watch_consumer_are_not_converted(client: KubeClient) -> None:
    async def fail() -> None:
        async with client.watch(CONFIG_MAPS, since="1005", seconds=60):
            raise FileNotFoundError("of the reader")

    with pytest.raises(FileNotFoundError, match="of the reader"):
        await fail()


async def test_a_server_that_is_down_is_unavailable(server: FakeApiServer) -> None:
    await server.stop()
    async with connect(ClientConfig(server.url), deadline=0.2) as client:
        with pytest.raises(
            KubeUnavailableError, match=r": cannot connect to 127\.0\.0\.1:\d+: Connection refused$"
        ) as raised:
            await client.list_all(CONFIG_MAPS)
    assert raised.value.status == 0
    assert isinstance(raised.value.__cause__, aiohttp.ClientError)


async def test_a_connection_error_shows_address_and_system_message_only(server: FakeApiServer) -> None:
    port = URL(server.url).port
    async with connect(ClientConfig(f"https://127.0.0.1:{port}"), deadline=0.2) as client:
        with pytest.raises(KubeUnavailableError, match=rf"cannot connect to 127\.0\.0\.1:{port}: \[SSL") as raised:
            await client.list_all(CONFIG_MAPS)
    assert "object at 0x" not in str(raised.value)


async def test_a_server_that_never_responds_is_unavailable(server: FakeApiServer) -> None:
    server.faults.hung = True
    async with connect(ClientConfig(server.url), deadline=0.2) as client:
        with pytest.raises(KubeUnavailableError, match="GET /api/v1/configmaps: timed out"):
            await client.list_all(CONFIG_MAPS)
        with pytest.raises(KubeUnavailableError, match="timed out"):
            async with client.watch(CONFIG_MAPS, since="1", seconds=60):
                pass


async def test_a_body_that_never_ends_times_out() -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    app = web.Application()
    app.router.add_get("/{path:.*}", trickle)
    async with TestServer(app) as served, connect(ClientConfig(str(served.make_url("/"))), deadline=0.2) as client:
        with pytest.raises(KubeUnavailableError, match="timed out"):
            await client.list_all(CONFIG_MAPS)


async def test_an_undecodable_object_is_an_error_of_get(client: KubeClient, server: FakeApiServer) -> None:
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"key": "1"}}, namespace="default")
    numbers = Resource("", "v1", "ConfigMap", "configmaps", Numbers)
    with pytest.raises(KubeError, match=r"configmaps/a: the response cannot be decoded: Expected `int`"):
        await client.get(numbers, "a", namespace="default")
    with pytest.raises(KubeError, match="default/a: Expected `int`, got `str`"):
        await client.list_all(numbers)


class Numbers(msgspec.Struct, frozen=True):
    """Config maps whose data are numbers."""

    metadata: Metadata
    data: dict[str, int]


async def test_redirects_are_not_followed(client: KubeClient, server: FakeApiServer) -> None:
    server.faults.rejections.clear()
    server.faults.reject(302, verb="get")
    with pytest.raises(KubeError, match="302") as raised:
        await client.get(CONFIG_MAPS, "a", namespace="default")
    assert raised.value.status == 302
    assert server.requests == ["get configmaps"]
