"""VncClient: keystone tokens, basic authentication, and TLS."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import pytest

from contrail_config.kube.configuration.value_source import FileValue, InlineValue
from contrail_config.vnc.authentication import BasicAuthentication
from contrail_config.vnc.client import VncAccess, connect
from contrail_config.vnc.credential_files import Password, Tls
from contrail_config.vnc.errors import VncForbiddenError, VncUnauthorizedError, VncUnavailableError
from contrail_config.vnc.keystone import EARLY, KeystoneTokens, KeystoneUser
from tests.contrail_config.kube.tls import path, server_context
from tests.support.contrail_api import authentication
from tests.support.contrail_api.keystone import Keystone
from tests.support.contrail_api.server import serve_contrail_api


@pytest.fixture
async def keystone() -> AsyncIterator[Keystone]:
    keystone = Keystone()
    await keystone.start()
    yield keystone
    await keystone.stop()


def user(keystone: Keystone, password: str | None = None) -> KeystoneUser:
    return KeystoneUser(keystone.url, keystone.user, inline(password or keystone.password))


def inline(password: str) -> Password:
    return Password(InlineValue(password.encode(), "password"))


async def test_one_token_serves_many_requests_at_once(keystone: Keystone) -> None:
    async with (
        serve_contrail_api(authentication=authentication.TokenAuthentication(keystone)) as server,
        connect(VncAccess((server.url,), keystone=user(keystone))) as vnc,
    ):
        await asyncio.gather(*(vnc.list_all("project", fields=["annotations"]) for _ in range(10)))
    assert len(keystone.requests) == 1
    asked = keystone.requests[0]["auth"]
    assert asked["identity"]["password"]["user"]["name"] == "admin"
    assert asked["scope"]["project"] == {"name": "admin", "domain": {"name": "Default"}}


async def test_a_rejected_token_is_renewed_and_the_request_repeated(keystone: Keystone) -> None:
    async with (
        serve_contrail_api(authentication=authentication.TokenAuthentication(keystone)) as server,
        connect(VncAccess((server.url,), keystone=user(keystone))) as vnc,
    ):
        await vnc.list_all("project", fields=["annotations"])
        keystone.revoke_all()
        await vnc.list_all("project", fields=["annotations"])
    assert len(keystone.requests) == 2


async def test_a_token_is_renewed_before_it_expires(keystone: Keystone) -> None:
    keystone.lifetime = timedelta(seconds=0)
    async with (
        serve_contrail_api(authentication=authentication.TokenAuthentication(keystone)) as server,
        connect(VncAccess((server.url,), keystone=user(keystone))) as vnc,
    ):
        for _ in range(2):
            await vnc.list_all("project", fields=["annotations"])
    assert len(keystone.requests) == 2


@pytest.mark.parametrize("hours", [-2, 2], ids=["behind", "ahead"])
async def test_a_token_lasts_as_long_as_keystone_says_whatever_its_clock_is(keystone: Keystone, hours: int) -> None:
    keystone.ahead = timedelta(hours=hours)
    passed = 0.0
    async with aiohttp.ClientSession() as session:
        tokens = KeystoneTokens(user(keystone), session, clock=lambda: time.monotonic() + passed)
        headers = await tokens.headers()
        assert await tokens.headers() == headers
        passed = keystone.lifetime.total_seconds()
        assert await tokens.headers() != headers


async def test_a_token_is_used_until_it_expires_while_keystone_is_away(keystone: Keystone) -> None:
    passed = 0.0
    async with aiohttp.ClientSession() as session:
        tokens = KeystoneTokens(user(keystone), session, clock=lambda: time.monotonic() + passed)
        headers = await tokens.headers()
        await keystone.stop()
        lifetime = keystone.lifetime.total_seconds()
        passed = lifetime - EARLY + 1
        assert await tokens.headers() == headers
        passed = lifetime
        with pytest.raises(VncUnavailableError):
            await tokens.headers()


async def test_a_rejected_token_is_not_used_again_while_keystone_is_away(keystone: Keystone) -> None:
    async with aiohttp.ClientSession() as session:
        tokens = KeystoneTokens(user(keystone), session)
        assert tokens.renew(await tokens.headers())
        await keystone.stop()
        with pytest.raises(VncUnavailableError):
            await tokens.headers()


async def test_a_wrong_password_is_not_authorized(keystone: Keystone) -> None:
    async with (
        serve_contrail_api(authentication=authentication.TokenAuthentication(keystone)) as server,
        connect(VncAccess((server.url,), keystone=user(keystone, "wrong"))) as vnc,
    ):
        with pytest.raises(VncUnauthorizedError, match="user, password or project is wrong"):
            await vnc.list_all("project", fields=["annotations"])


async def test_a_failing_keystone_is_asked_again(keystone: Keystone) -> None:
    keystone.failures = [503]
    async with (
        serve_contrail_api(authentication=authentication.TokenAuthentication(keystone)) as server,
        connect(VncAccess((server.url,), keystone=user(keystone))) as vnc,
    ):
        await vnc.list_all("project", fields=["annotations"])


async def test_a_keystone_that_is_away_is_named(keystone: Keystone) -> None:
    await keystone.stop()
    async with connect(VncAccess(("http://127.0.0.1:1",), keystone=user(keystone)), deadline=0.2) as vnc:
        with pytest.raises(VncUnavailableError, match=f"POST {keystone.url}/auth/tokens: cannot connect"):
            await vnc.has_watch()


async def test_a_keystone_that_does_not_answer_is_named(keystone: Keystone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrail_config.vnc.keystone.DEADLINE", 0.1)
    keystone.hung = True
    async with connect(VncAccess(("http://127.0.0.1:1",), keystone=user(keystone)), deadline=0.05) as vnc:
        with pytest.raises(VncUnavailableError, match=f"^POST {keystone.url}/auth/tokens: timed out"):
            await vnc.list_all("project", fields=["annotations"])


async def test_a_failing_keystone_does_not_cost_the_server_its_requests(keystone: Keystone) -> None:
    """Another server would have to be told of what this one wrote."""
    keystone.failures = [503, 503, 503]
    checked = authentication.TokenAuthentication(keystone)
    async with (
        serve_contrail_api(authentication=checked) as first,
        serve_contrail_api(first.database, authentication=checked) as second,
        connect(VncAccess((first.url, second.url), keystone=user(keystone))) as vnc,
    ):
        await vnc.list_all("project", fields=["annotations"])
        assert (len(first.requests), second.requests) == (1, [])


async def test_a_user_without_the_role_is_forbidden() -> None:
    keystone = Keystone(roles=("member",))
    await keystone.start()
    async with (
        serve_contrail_api(authentication=authentication.TokenAuthentication(keystone)) as server,
        connect(VncAccess((server.url,), keystone=user(keystone))) as vnc,
    ):
        with pytest.raises(VncForbiddenError, match="Permission Denied"):
            await vnc.list_all("project", fields=["annotations"])
    await keystone.stop()


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(KeystoneUser("http://k/v3", "admin", inline("secret")))


@pytest.mark.parametrize("password", ["secret", "wrong"])
async def test_basic_authentication_sends_user_and_password(password: str) -> None:
    async with (
        serve_contrail_api(authentication=authentication.BasicAuthentication("admin", "secret")) as server,
        connect(VncAccess((server.url,), authentication=BasicAuthentication("admin", inline(password)))) as vnc,
    ):
        if password == "secret":
            await vnc.list_all("project", fields=["annotations"])
        else:
            with pytest.raises(VncUnauthorizedError):
                await vnc.list_all("project", fields=["annotations"])


async def test_a_server_is_verified_with_the_configured_authority() -> None:
    pair = FileValue(path("client.pem"), "certificate-file"), FileValue(path("client.key"), "key-file")
    trusted = Tls(authority=FileValue(path("authority.pem"), "ca-file"), certificate=pair)
    async with serve_contrail_api(tls=server_context()) as server:
        async with connect(VncAccess((server.url,), tls=trusted)) as vnc:
            assert await vnc.has_watch()
        async with connect(VncAccess((server.url,), tls=Tls()), deadline=0.2) as vnc:
            with pytest.raises(VncUnavailableError, match="certificate is not trusted"):
                await vnc.has_watch()
