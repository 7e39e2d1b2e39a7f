"""Every command that reads a whole cluster says on a terminal what it does; the line is gone at its end."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from contrailctl import progress
from tests.support.cluster_processes import plain_kubeconfig
from tests.support.contrailctl_command import run_contrailctl
from tests.support.fake_apis import served
from tests.support.terminal import Terminal, cleared_after, terminal_of

STATUS_STAGES = [
    "reading managers",
    "reading nodes",
    "reading pending pods",
    "waiting for the leader to renew its lease",
]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/contrail/leases/contrail-manager"
POD = {"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": {"nodeName": "node-1"}}
NODE_POD = {
    "metadata": {"name": "contrail-node-x", "namespace": "contrail", "uid": "x"},
    "spec": {"nodeName": "node-1", "containers": [{"name": "cnid", "image": "i"}]},
}
NODE = {"metadata": {"name": "node-1"}, "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}


class SlowCluster:
    """API server of a node with a pod. The request of `method` for `path`, the one of this number, takes until the end.

    The leader renews its lease before each look. Everything that is not here is an empty list.
    """

    def __init__(self) -> None:
        self.slow = ("GET", "", 1)
        self.released = asyncio.Event()
        self._asked = 0
        self._looks = 0
        self._objects: dict[str, Any] = {
            "/api/v1/nodes": {"metadata": {}, "items": [NODE]},
            "/api/v1/namespaces/contrail/pods": {"metadata": {}, "items": [NODE_POD]},
            "/api/v1/namespaces/shop/pods/web": POD,
        }

    async def answer(self, request: web.Request) -> web.Response:
        """Answers a request, after its release with 403, at which no client tries again."""
        method, path, number = self.slow
        if (request.method, request.path) == (method, path):
            self._asked += 1
            if self._asked >= number:
                await self.released.wait()
                return web.json_response({"kind": "Status", "message": "released"}, status=403)
        if request.path == LEASE:
            return web.json_response(self._lease())
        return web.json_response(self._objects.get(request.path, {"metadata": {}, "items": []}))

    def _lease(self) -> dict[str, Any]:
        self._looks += 1
        metadata = {"name": "contrail-manager", "resourceVersion": str(self._looks)}
        return {"metadata": metadata, "spec": {"holderIdentity": "a"}}


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlowCluster]:
    """The cluster that the environment names."""
    cluster = SlowCluster()
    async with served([web.route("*", "/{path:.*}", cluster.answer)]) as url:
        monkeypatch.setenv("KUBECONFIG", str(plain_kubeconfig(tmp_path, url)))
        yield cluster


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Standard error of the command, which counts as slow at once."""
    with terminal_of(progress, monkeypatch) as terminal:
        yield terminal


@pytest.fixture
def slow_program(tmp_path: Path) -> Path:
    """An executable `kubectl` that ends when somebody writes to the pipe beside it."""
    folder = tmp_path / "programs"
    folder.mkdir()
    os.mkfifo(folder / "released")
    program = folder / "kubectl"
    program.write_text(f"#!/bin/sh\nread line < {folder}/released\n")
    program.chmod(0o755)
    return program


@contextmanager
def ending_when_written_to(program: Path) -> Iterator[Callable[[], object]]:
    """Yields what ends all runs of the slow program, also those that begin later in the context."""
    pipe = os.open(program.with_name("released"), os.O_RDWR)
    try:
        yield lambda: os.write(pipe, b"\n" * 100)
    finally:
        os.close(pipe)


async def stages_until(terminal: Terminal, last: str) -> list[str]:
    """What the command has said it does, in order, when it says the last of it."""
    text = await terminal.shown(f"{last} (")
    return list(dict.fromkeys(re.findall(r"\x1b\[K([^\r(]+) \(", text)))


@pytest.mark.parametrize(
    ("command", "slow", "stages"),
    [
        (("status",), ("GET", LEASE, 2), STATUS_STAGES),
        (("trace", "shop/web"), ("GET", "/api/v1/namespaces/shop/pods/web", 1), ["reading the pod"]),
        (
            ("check", "connectivity", "--node", "node-1", "--node-command", "true", "--live", "--image", "i"),
            ("POST", "/api/v1/namespaces", 1),
            ["reading the store", "checking 1 node", "checking with 1 temporary pod"],
        ),
    ],
    ids=["status", "trace", "check"],
)
async def test_a_command_whose_cluster_is_slow_says_what_it_does(
    terminal: Terminal,
    cluster: SlowCluster,
    command: tuple[str, ...],
    slow: tuple[str, str, int],
    stages: list[str],
) -> None:
    cluster.slow = slow
    running = asyncio.create_task(run_contrailctl(*command))
    async with cleared_after(terminal, running, cluster.released.set):
        assert await stages_until(terminal, stages[-1]) == stages


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("command", "stages"),
    [
        (("trace", "shop/web"), ["reading the pod", "asking the daemon of node-1"]),
        (("sysdump",), [*STATUS_STAGES, "reading objects", "reading logs", "running commands on 1 node"]),
        (("check", "connectivity", "--node", "node-1"), ["reading the store", "checking 1 node"]),
    ],
    ids=["trace", "sysdump", "check"],
)
async def test_a_command_that_waits_for_one_on_a_node_says_what_it_does(
    terminal: Terminal,
    slow_program: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    stages: list[str],
) -> None:
    monkeypatch.setenv("PATH", str(slow_program.parent), prepend=":")
    monkeypatch.chdir(slow_program.parent)
    running = asyncio.create_task(run_contrailctl(*command))
    with ending_when_written_to(slow_program) as release:
        async with cleared_after(terminal, running, release):
            assert await stages_until(terminal, stages[-1]) == stages
