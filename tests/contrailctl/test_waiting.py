"""Every command that only waits says for what, on a terminal, once it has taken long; the line is gone at its end."""

import asyncio
import io
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import NoReturn

import pytest
from aiohttp import web

from cni_contrail.settings import node_settings
from contrailctl import cli, waiting
from contrailctl.check import node
from contrailctl.errors import UsageError
from tests.support.contrailctl_command import run_contrailctl
from tests.support.fake_apis import served
from tests.support.terminal import DEADLINE, Terminal, cleared_after, terminal_of


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Standard error of the command, which counts as slow at once."""
    with terminal_of(waiting, monkeypatch) as terminal:
        yield terminal


@pytest.mark.parametrize(
    ("command", "stage"),
    [
        (("get", "pods"), "reading pods"),
        (("get", "adds", "-n", "shop", "router"), "reading adds"),
        (("describe", "pod", "shop/router"), "reading pod shop/router"),
        (("status",), "asking the processes"),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
async def test_a_command_whose_server_is_slow_says_what_it_does(
    terminal: Terminal, command: tuple[str, ...], stage: str
) -> None:
    released = asyncio.Event()

    async def slow(_request: web.Request) -> web.Response:
        await released.wait()
        return web.Response(status=503)

    async with served([web.get("/{path:.*}", slow)]) as url:
        daemon = ("--daemon", url) if "adds" in command else ()
        running = asyncio.create_task(run_contrailctl("--manager", url, "--agent", url, *command, *daemon))
        async with cleared_after(terminal, running, released.set):
            await terminal.shown(f"{stage} (0 s)")


@pytest.mark.parametrize(
    ("command", "replace", "stage"),
    [
        (
            ("cni", "status", "blue"),
            lambda patch, slow: patch.setitem(cli._OPERATIONS, "status", slow),
            "running status of the plugins",
        ),
        (
            ("datapath", "purge"),
            lambda patch, slow: patch.setattr(cli, "purge_datapath", slow),
            "removing the datapath",
        ),
        (
            ("check", "node", "--node-name", "n1"),
            lambda patch, slow: patch.setattr(node, "confirmed", slow),
            "comparing n1 with its desired state",
        ),
    ],
    ids=["cni", "datapath", "check"],
)
async def test_a_command_that_works_on_the_node_for_long_says_what_it_does(
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    replace: Callable[[pytest.MonkeyPatch, Callable[..., NoReturn]], None],
    stage: str,
) -> None:
    released = threading.Event()

    def slow(*_arguments: object, **_options: object) -> NoReturn:
        released.wait(DEADLINE)
        raise UsageError("released")

    replace(monkeypatch, slow)
    monkeypatch.setattr(node, "_settings", lambda _config: node_settings({}, {}))
    running = asyncio.create_task(run_contrailctl(*command))
    async with cleared_after(terminal, running, released.set):
        await terminal.shown(f"{stage} (0 s)")


def test_nothing_is_shown_of_a_short_command(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "QUIET_SECONDS", DEADLINE)
    with waiting.shown_while("reading pods"):
        pass
    assert terminal.rest() == ""


def test_a_pipe_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(waiting, "sys", SimpleNamespace(stderr=pipe))
    monkeypatch.setattr(waiting, "QUIET_SECONDS", 0.0)
    with waiting.shown_while("reading pods"):
        pass
    assert pipe.getvalue() == ""
