"""Credential files: passwords and certificates that rotate while the client runs take effect without a restart."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contrail_config.kube.configuration import value_source
from contrail_config.vnc.access import load_access
from contrail_config.vnc.client import VncClient, connect
from contrail_config.vnc.errors import VncUnauthorizedError, VncUnavailableError
from contrail_config.vnc.settings import VncSettings
from tests.contrail_config.kube.tls import path, server_context, text
from tests.support.contrail_api.authentication import BasicAuthentication, TokenAuthentication
from tests.support.contrail_api.keystone import Keystone
from tests.support.contrail_api.server import ContrailApi, serve_contrail_api


@pytest.fixture
async def keystone() -> AsyncIterator[Keystone]:
    keystone = Keystone(password="old")
    await keystone.start()
    yield keystone
    await keystone.stop()


@pytest.fixture
def password(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text("old\n")
    return file


def write(file: Path, content: str) -> None:
    file.write_text(content)


def by_keystone(server: ContrailApi, keystone: Keystone, password: Path) -> VncSettings:
    section = {"url": keystone.url, "user": "admin", "password-file": str(password)}
    return settings(server, keystone=section)


def settings(server: ContrailApi, **keys: Any) -> VncSettings:
    return msgspec.convert({"kind": "vnc", "url": server.url, **keys}, VncSettings)


async def ask(client: VncClient) -> None:
    await client.list_all("project", fields=["annotations"])


async def test_a_token_is_requested_with_the_password_that_is_in_the_file_by_then(
    keystone: Keystone, password: Path
) -> None:
    async with serve_contrail_api(authentication=TokenAuthentication(keystone)) as server:
        access = await load_access(by_keystone(server, keystone, password))
        async with connect(access) as client:
            await ask(client)
            keystone.password = "new"
            keystone.revoke_all()  # as Keystone does when a password changes
            write(password, "new\n")
            await ask(client)
    assert passwords(keystone) == ["old", "new"]


async def test_a_half_written_password_is_replaced_when_the_file_is_complete(
    keystone: Keystone, password: Path
) -> None:
    async with serve_contrail_api(authentication=TokenAuthentication(keystone)) as server:
        access = await load_access(by_keystone(server, keystone, password))
        async with connect(access) as client:
            keystone.password = "new"
            write(password, "ne")
            with pytest.raises(VncUnauthorizedError):
                await ask(client)
            write(password, "new")
            await ask(client)
    assert passwords(keystone) == ["ne", "new"]


@pytest.mark.parametrize("written", ["", "a\nb\n"], ids=["empty", "two lines"])
async def test_the_previous_password_is_used_while_the_file_holds_none(
    keystone: Keystone, password: Path, written: str
) -> None:
    async with serve_contrail_api(authentication=TokenAuthentication(keystone)) as server:
        access = await load_access(by_keystone(server, keystone, password))
        async with connect(access) as client:
            write(password, written)
            await ask(client)
    assert passwords(keystone) == ["old"]


async def test_basic_authentication_reads_the_password_again_when_it_is_rejected(password: Path) -> None:
    async with serve_contrail_api(authentication=BasicAuthentication("admin", "new")) as server:
        basic = {"user": "admin", "password-file": str(password)}
        async with connect(await load_access(settings(server, basic=basic))) as client:
            with pytest.raises(VncUnauthorizedError):
                await ask(client)
            write(password, "new\n")
            await ask(client)


async def test_basic_authentication_reads_the_password_again_after_a_while(
    password: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_contrail_api(authentication=BasicAuthentication("admin", "new")) as server:
        basic = {"user": "admin", "password-file": str(password)}
        async with connect(await load_access(settings(server, basic=basic))) as client:
            write(password, "new\n")
            monkeypatch.setattr(value_source, "REFRESH_INTERVAL", 0.0)
            await ask(client)
            assert len(server.requests) == 1


def rewrite(folder: Path, **files: str) -> dict[str, str]:
    """Copies certificates and keys of the tests, and returns the keys of a configuration that name the copies."""
    for name, content in files.items():
        (folder / name).write_text(text(content))
    return {f"{name}-file": str(folder / name) for name in files}


async def test_authorities_are_read_again_when_the_servers_certificate_is_not_trusted(tmp_path: Path) -> None:
    keys = rewrite(tmp_path, ca="other-authority.pem")
    async with (
        serve_contrail_api(tls=server_context()) as server,
        connect(await load_access(settings(server, **keys)), deadline=10) as client,
    ):
        with pytest.raises(VncUnavailableError, match="certificate is not trusted"):
            await client.has_watch()  # without retries
        rewrite(tmp_path, ca="authority.pem")
        await ask(client)


def requiring_certificates() -> ssl.SSLContext:
    context = server_context()
    context.verify_mode = ssl.CERT_REQUIRED
    return context


async def test_the_client_certificate_is_read_again_when_the_server_rejects_it(tmp_path: Path) -> None:
    other = rewrite(tmp_path, certificate="other-server.pem", key="other-server.key")
    async with serve_contrail_api(tls=requiring_certificates()) as server:
        keys = {"ca-file": path("authority.pem"), **other}
        async with connect(await load_access(settings(server, **keys)), deadline=10) as client:
            with pytest.raises(VncUnavailableError):
                await client.has_watch()  # without retries
            rewrite(tmp_path, certificate="client.pem", key="client.key")
            await ask(client)


async def test_the_previous_client_certificate_is_used_until_certificate_and_key_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_source, "REFRESH_INTERVAL", 0.0)
    old = rewrite(tmp_path, certificate="client.pem", key="client.key")
    async with serve_contrail_api(tls=requiring_certificates()) as server:
        keys = {"ca-file": path("authority.pem"), **old}
        access = await load_access(settings(server, **keys))
        async with connect(access, deadline=10) as client:
            await ask(client)
            rewrite(tmp_path, certificate="next-client.pem")
            await ask(client)
            assert access.tls is not None
            before = await access.tls.context()
            rewrite(tmp_path, key="next-client.key")
            await ask(client)
            assert await access.tls.context() is not before


async def test_keystones_authorities_are_read_again_when_its_certificate_is_not_trusted(
    tmp_path: Path, password: Path
) -> None:
    keystone = Keystone(password="old", tls=server_context())
    await keystone.start()
    async with serve_contrail_api(authentication=TokenAuthentication(keystone)) as server:
        keys = {**rewrite(tmp_path, ca="other-authority.pem"), "password-file": str(password)}
        section = {"url": keystone.url, "user": "admin", **keys}
        async with connect(await load_access(settings(server, keystone=section)), deadline=10) as client:
            with pytest.raises(VncUnavailableError, match="certificate is not trusted"):
                await client.has_watch()  # without retries
            rewrite(tmp_path, ca="authority.pem")
            await ask(client)
    await keystone.stop()


def passwords(keystone: Keystone) -> list[str]:
    """Returns the passwords with which tokens were requested."""
    return [body["auth"]["identity"]["password"]["user"]["password"] for body in keystone.requests]
