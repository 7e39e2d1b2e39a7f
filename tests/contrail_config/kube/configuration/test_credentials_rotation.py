"""Tokens: static or from a file, which is read again when it changed or the server rejects the old one."""

import os
from pathlib import Path

import pytest

from contrail_config.kube.client import connect
from contrail_config.kube.configuration import value_source
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.configuration.value_source import FileValue
from contrail_config.kube.errors import KubeConfigurationError, KubeUnauthorizedError
from contrail_config.kube.reflector import Reflector
from tests.contrail_config.kube.configuration.conftest import WriteKubeconfig, ask_by
from tests.support.config_maps import CONFIG_MAPS, ConfigMaps
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import QUICK, eventually, record_reflector


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("old\n")
    return file


async def test_a_token_in_the_kubeconfig_is_sent(server: FakeApiServer, write_kubeconfig: WriteKubeconfig) -> None:
    await ask_by(write_kubeconfig(server.url, user={"token": "secret"}))
    assert server.callers == ["secret"]


async def test_a_token_file_takes_precedence(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, token_file: Path
) -> None:
    await ask_by(write_kubeconfig(server.url, user={"token": "secret", "tokenFile": str(token_file)}))
    assert server.callers == ["old"]


async def test_a_file_is_read_again_after_a_while(token_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = FileValue(str(token_file), "token")
    assert await contents.read() == b"old\n"
    rotate(token_file, "new")
    assert await contents.read() == b"old\n"
    monkeypatch.setattr(value_source, "REFRESH_INTERVAL", 0.0)
    assert await contents.read() == b"new"


async def test_a_file_that_cannot_be_read_again_keeps_its_contents(
    token_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    contents = FileValue(str(token_file), "token")
    await contents.read()
    os.unlink(token_file)
    contents.invalidate()
    assert await contents.read() == b"old\n"
    assert "cannot be read, using the previous contents" in caplog.text


async def test_the_file_is_read_again_when_the_server_rejects_the_token(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, token_file: Path
) -> None:
    server.faults.tokens = {"old"}
    file = write_kubeconfig(server.url, user={"tokenFile": str(token_file)})
    async with connect(await load_client_config(kubeconfig=file)) as client:
        await client.list_all(CONFIG_MAPS)
        server.faults.tokens = {"new"}
        rotate(token_file, "new")
        await client.list_all(CONFIG_MAPS)
        assert server.callers == ["old", "old", "new"]


async def test_a_token_that_stays_wrong_fails_after_two_attempts(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, token_file: Path
) -> None:
    server.faults.tokens = {"new"}
    with pytest.raises(
        KubeUnauthorizedError, match=f"401 .*: the server rejected .*users 'me': tokenFile: {token_file}"
    ):
        await ask_by(write_kubeconfig(server.url, user={"tokenFile": str(token_file)}))
    assert server.callers == ["old", "old"]


async def test_a_static_token_is_tried_once(server: FakeApiServer, write_kubeconfig: WriteKubeconfig) -> None:
    server.faults.tokens = {"new"}
    with pytest.raises(KubeUnauthorizedError, match=r"the server rejected .*users 'me': token$"):
        await ask_by(write_kubeconfig(server.url, user={"token": "old"}))
    assert server.callers == ["old"]


async def test_a_reflector_survives_the_rotation_of_its_token(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, token_file: Path
) -> None:
    server.faults.tokens = {"old"}
    file = write_kubeconfig(server.url, user={"tokenFile": str(token_file)})
    async with (
        connect(await load_client_config(kubeconfig=file)) as client,
        record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed,
    ):
        await followed.until_listed()
        server.faults.tokens = {"new"}
        server.cut_watches()
        await eventually(lambda: "401" in (followed.reflector.problem or ""))
        rotate(token_file, "new")
        await eventually(lambda: followed.reflector.problem is None)
        await ConfigMaps(client).create("a")
        await followed.until_seen("a")
        assert followed.lists == 1


@pytest.mark.parametrize("content", [b"", b" \n", b"two words", b"two\nlines", b"\xff\xfe", "tök".encode()])
async def test_an_invalid_token_is_rejected_without_showing_it(
    server: FakeApiServer, write_kubeconfig: WriteKubeconfig, token_file: Path, content: bytes
) -> None:
    rotate(token_file, content)
    with pytest.raises(KubeConfigurationError, match=r"config: users 'me': tokenFile: .*/token: not a token") as raised:
        await ask_by(write_kubeconfig(server.url, user={"tokenFile": str(token_file)}))
    assert "two" not in str(raised.value)


def rotate(file: Path, token: str | bytes) -> None:
    """Replaces the token as kubelet does, by a rename."""
    (file.parent / "next").write_bytes(token if isinstance(token, bytes) else token.encode())
    os.replace(file.parent / "next", file)
