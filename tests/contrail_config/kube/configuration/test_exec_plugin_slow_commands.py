"""Slow exec plugins: run once although callers time out, reported in the end, and killed with their client."""

import asyncio
import gc
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from contrail_config.kube import client
from contrail_config.kube.client import connect
from contrail_config.kube.client_config import ClientConfig, Credentials
from contrail_config.kube.configuration import exec_plugin
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.errors import KubeConfigurationError
from contrail_config.kube.leader_election import LeaderElection, LeaseTimings
from tests.contrail_config.kube.configuration.commands import (
    WriteCommand,
    all_ended,
    both_run,
    count_runs,
    counting,
    hanging,
    user,
)
from tests.contrail_config.kube.configuration.conftest import WriteKubeconfig
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually

IMPATIENT = LeaseTimings(duration=3.0, renew_deadline=0.4, retry_period=0.05)

LoadConfig = Callable[[str], Awaitable[ClientConfig]]


@pytest.fixture
def load(server: FakeApiServer, write_kubeconfig: WriteKubeconfig, write_command: WriteCommand) -> LoadConfig:
    """Returns the client configuration of a user with an exec plugin that runs the given Python code."""

    async def load(code: str) -> ClientConfig:
        return await load_client_config(kubeconfig=write_kubeconfig(server.url, user=user(write_command(code))))

    return load


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file that does not exist yet."""
    return tmp_path / "gate"


def waiting(gate: Path) -> str:
    """Python code that waits until the gate exists."""
    return f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)\n"


def open_gate(gate: Path) -> None:
    gate.touch()


async def let_tasks_run() -> None:
    """Runs all tasks that are ready."""
    for _ in range(20):
        await asyncio.sleep(0)


async def give_up(credentials: Credentials, when: Callable[..., object], *arguments: object) -> None:
    """Requests credentials, and cancels the request once a condition holds."""
    request = asyncio.create_task(credentials.current())
    await eventually(when, *arguments)
    await let_tasks_run()
    request.cancel()
    await asyncio.wait([request])


def test_a_command_times_out_before_the_request() -> None:
    assert exec_plugin.DEADLINE < client.DEADLINE


async def test_a_command_slower_than_an_election_attempt_does_not_prevent_leading(
    server: FakeApiServer, load: LoadConfig, runs: Path, gate: Path
) -> None:
    async def open_after_an_attempt() -> None:
        await eventually(lambda: election.problem)
        open_gate(gate)

    async with connect(await load(counting(runs) + waiting(gate))) as voter, asyncio.TaskGroup() as tasks:
        election = LeaderElection(voter, namespace="default", name="manager", identity="a", timings=IMPATIENT)
        tasks.create_task(open_after_an_attempt())
        async with election.lead():
            assert set(server.callers) == {"t1"}


async def test_its_failure_is_raised_although_the_first_caller_gave_up(
    load: LoadConfig, runs: Path, gate: Path
) -> None:
    credentials = (await load(f"{counting(runs)}{waiting(gate)}raise SystemExit('log in first')")).credentials
    await give_up(credentials, count_runs, runs)
    open_gate(gate)
    with pytest.raises(KubeConfigurationError, match="failed with status 1: log in first"):
        await credentials.current()
    assert count_runs(runs) == 1


async def test_a_command_is_killed_when_its_client_is_closed(load: LoadConfig, pids: Path) -> None:
    config = await load(hanging(pids))
    async with connect(config):
        await give_up(config.credentials, both_run, pids)
    await eventually(all_ended, pids)


async def test_a_command_that_is_being_started_is_killed_too(
    load: LoadConfig, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = asyncio.create_subprocess_exec
    has_started = asyncio.Event()

    async def start_slowly(*command: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*command, **options)
        await has_started.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_slowly)
    credentials = (await load(hanging(pids))).credentials
    await give_up(credentials, both_run, pids)
    closing = asyncio.create_task(credentials.close())
    await let_tasks_run()
    has_started.set()
    await closing
    await eventually(all_ended, pids)


def test_no_process_is_left_when_the_event_loop_ends(
    load: LoadConfig, pids: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        await give_up((await load(hanging(pids))).credentials, both_run, pids)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(run())
        gc.collect()
    assert [str(each.message) for each in warned] == []
    assert caplog.messages == []
    asyncio.run(eventually(all_ended, pids))
