"""A manager and an agent that serve a small cluster, and a runner of the command."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.cni_directories import CniDirectories
from tests.support.contrailctl_command import CommandOutcome, Run, run_contrailctl
from tests.support.fake_apis import FakeAgentApi, FakeManagerApi, served
from tests.support.scripted_plugins import added


@pytest.fixture
def contrailctl(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    for variable in ("CONTRAIL_MANAGER", "CONTRAIL_AGENT", "CNI_PATH", "KUBECONFIG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # without a kubeconfig

    async def run(*argv: str) -> CommandOutcome:
        status = await run_contrailctl(*argv)
        return CommandOutcome(status, *capsys.readouterr())

    return run


@pytest.fixture
def bench(tmp_path: Path) -> CniDirectories:
    bench = CniDirectories.below(tmp_path)
    bench.plugins.script("bridge", ADD=added())
    return bench


@pytest.fixture
def manager_process() -> FakeManagerApi:
    return FakeManagerApi()


@pytest.fixture
def agent_process() -> FakeAgentApi:
    return FakeAgentApi()


@pytest.fixture
async def manager(manager_process: FakeManagerApi) -> AsyncIterator[str]:
    """URL of a manager that serves the small cluster."""
    async with served(manager_process.routes()) as url:
        yield url


@pytest.fixture
async def agent(agent_process: FakeAgentApi) -> AsyncIterator[str]:
    """URL of an agent that serves the pod shop/router."""
    async with served(agent_process.routes()) as url:
        yield url


@pytest.fixture
def unreachable_url() -> str:
    """URL of a port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
