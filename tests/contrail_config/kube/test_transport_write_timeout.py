"""A write that may take a limited time passes the remaining time to the server, as it is when the request is sent."""

import asyncio
import ssl

from contrail_config.kube.client import connect
from contrail_config.kube.client_config import Anonymous, ClientCertificate, ClientConfig, Credential
from tests.contrail_config.kube.tls import path, server_context
from tests.support.config_maps import ConfigMaps
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.fast_event_loop import run_fast

ALLOWED = 10.0
LATE = 4.0
NEARLY = 0.5
"""Seconds of real time that a slow host may add to the fast time."""


class LateCredentials(Anonymous):
    async def current(self) -> Credential:
        await asyncio.sleep(LATE)
        return Credential()


class NewTokens(Anonymous):
    """Returns a new token each time, after the same delay."""

    def __init__(self) -> None:
        self._count = 0

    async def current(self) -> Credential:
        await asyncio.sleep(LATE)
        self._count += 1
        return Credential(f"t{self._count}")

    def invalidate(self, rejected: Credential) -> bool:
        return True


class LateTls:
    """Trusts the authority of the tests, after a delay."""

    origin = "authority.pem"

    def __init__(self) -> None:
        self._context = ssl.create_default_context(cafile=path("authority.pem"))

    async def context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        await asyncio.sleep(LATE)
        return self._context

    def invalidate(self) -> None:
        """Does nothing."""


async def write(config: ClientConfig, *, allowed: float = ALLOWED) -> None:
    deadline = asyncio.get_running_loop().time() + allowed
    async with connect(config, before_write=lambda: deadline - asyncio.get_running_loop().time()) as client:
        await ConfigMaps(client).create("a")


def assert_timeout_sent(server: FakeApiServer, seconds: float) -> None:
    (sent,) = server.time_limits
    assert seconds - NEARLY < sent <= seconds


def test_the_time_to_get_credentials_is_subtracted() -> None:
    async def play() -> None:
        async with serve_fake_apiserver() as server:
            await write(ClientConfig(server.url, credentials=LateCredentials()))
            assert_timeout_sent(server, ALLOWED - LATE)

    run_fast(play())


def test_the_time_to_get_a_tls_context_is_subtracted() -> None:
    async def play() -> None:
        async with serve_fake_apiserver(tls=server_context()) as server:
            await write(ClientConfig(server.url, tls=LateTls()))
            assert_timeout_sent(server, ALLOWED - LATE)

    run_fast(play())


def test_the_time_of_a_rejected_attempt_is_subtracted() -> None:
    async def play() -> None:
        async with serve_fake_apiserver() as server:
            server.faults.tokens = {"t2"}
            await write(ClientConfig(server.url, credentials=NewTokens()))
            assert_timeout_sent(server, ALLOWED - 2 * LATE)

    run_fast(play())


async def test_an_unlimited_write_sends_no_timeout(server: FakeApiServer) -> None:
    async with connect(ClientConfig(server.url)) as client:
        await ConfigMaps(client).create("a")
    assert server.time_limits == []
