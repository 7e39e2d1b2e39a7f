"""Fixtures for the tests of configuration: servers with TLS, and kubeconfig files."""

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from contrail_config.kube.client import connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.configuration.load import load_client_config
from tests.contrail_config.kube.configuration.commands import WriteCommand
from tests.contrail_config.kube.tls import data, server_context
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver

WriteKubeconfig = Callable[..., str]
"""Writes a kubeconfig with one context and returns its path: `write(server, cluster={...}, user={...})`."""


@pytest.fixture
async def tls_server() -> AsyncIterator[FakeApiServer]:
    async with serve_fake_apiserver(tls=server_context()) as server:
        yield server


@pytest.fixture
def write_kubeconfig(tmp_path: Path) -> WriteKubeconfig:
    def write(
        server: str, *, name: str = "config", cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None
    ) -> str:
        file = tmp_path / name
        file.write_text(yaml.safe_dump(document(server, cluster=cluster, user=user)))
        return str(file)

    return write


@pytest.fixture
def write_command(tmp_path: Path) -> WriteCommand:
    def write(code: str, name: str = "plugin") -> str:
        file = tmp_path / name
        file.write_text(f"#!{sys.executable} -IS\n{code}\n")
        file.chmod(0o755)
        return str(file)

    return write


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A file to which commands add a line for each run."""
    file = tmp_path / "runs"
    file.touch()
    return file


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    """A file to which a command writes the pids of its processes."""
    file = tmp_path / "pids"
    file.touch()
    return file


def document(server: str, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Any:
    """Returns a parsed kubeconfig; an https server is trusted unless `cluster` says otherwise."""
    trust = {"certificate-authority-data": data("authority.pem")} if server.startswith("https") else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "there", "user": "me"}}],
        "clusters": [{"name": "there", "cluster": {"server": server} | (trust if cluster is None else cluster)}],
        "users": [{"name": "me", "user": user or {}}],
    }


async def ask(config: ClientConfig) -> None:
    """Sends one request."""
    async with connect(config, deadline=10) as client:
        await client.list_all(CONFIG_MAPS)


async def ask_by(kubeconfig: str) -> None:
    """Sends one request with the current context of a file."""
    await ask(await load_client_config(kubeconfig=kubeconfig, environment={}))
