"""Metrics that the programs serve, as a scraper reads them. Each runs as a process, with both stores if it has one."""

import asyncio
import contextlib
import http.client
import json
import os
import socket
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.support.cluster_objects import ClusterObjects
from tests.support.cluster_processes import BINARIES, AgentProcess, ManagerProcess, plain_kubeconfig
from tests.support.contrail_api.server import serve_contrail_api
from tests.support.daemon_client import DaemonClient
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.free_port import free_port
from tests.support.served_process import ServedProcess

_NODE = "node-1"
_REPORT = {
    "version": "v1",
    "changes": 0,
    "repaired": 1,
    "seconds": 0.1,
    "problems": {"0": "kernel module bridge is missing"},
    "missing-modules": ["bridge"],
}

Metrics = dict[str, dict[str, set[str]]]
"""By name of a sample, the values of each of its labels."""


def served_metrics(folder: Path) -> Metrics:
    """Runs every program, each with a pod to serve or a call that fails, and reads its metrics. Needs root."""
    for name in ("kubernetes", "vnc", "cnid"):
        (folder / name).mkdir()
    return asyncio.run(_serve_all(folder))


async def _serve_all(folder: Path) -> Metrics:
    metrics: Metrics = defaultdict(lambda: defaultdict(set))
    async with serve_fake_apiserver() as server, serve_fake_apiserver() as other, serve_contrail_api() as contrail:
        vnc = {"kind": "vnc", "url": contrail.url}
        with contextlib.ExitStack() as stack:
            run = _Runner(stack)
            await run.manager(folder / "kubernetes", server)
            agent = await run.agent(folder / "kubernetes", datapath="linux")
            await asyncio.to_thread(_report, agent.socket)
            await run.manager(folder / "vnc", other, store=vnc)
            plain = await run.agent(folder / "vnc", store={**vnc, "url": [contrail.url]})
            await run.daemon(folder / "cnid", plain.socket)
            await asyncio.to_thread(_fail, folder / "cnid" / "cni.sock")
            for process in run.started:
                await asyncio.to_thread(_read, process, metrics)
    return metrics


class _Runner:
    """Starts programs, which are killed when `stack` is closed."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.started: list[ServedProcess] = []
        self._stack = stack

    async def manager(self, folder: Path, server: FakeApiServer, **settings: Any) -> None:
        """Runs a manager that has assigned the interfaces of a pod."""
        objects = ClusterObjects(server)
        objects.add_node(_NODE)
        objects.add_nad("left")
        objects.add_pod("web-0", networks="left", node=_NODE)
        process = ManagerProcess(folder, plain_kubeconfig(folder, server.url), **settings)
        await self._start(process, process.wait_until_it_leads)

    async def agent(self, folder: Path, **settings: Any) -> AgentProcess:
        """Runs the agent of the pod's node, which need not be ready: nothing programs the datapath."""
        process = AgentProcess(folder, folder / "kubeconfig", node=_NODE, **settings)
        await self._start(process, lambda: process.wait_until(lambda: _serves_pod(process), what="serving the pod"))
        return process

    async def daemon(self, folder: Path, agent_socket: Path) -> ServedProcess:
        """Runs a daemon whose agent has no datapath, so that it leaves the kernel alone."""
        listen = f"127.0.0.1:{free_port()}"
        configuration = {
            "socket": str(folder / "cni.sock"),
            "metrics-listen": listen,
            "agent-socket": str(agent_socket),
            "state-dir": str(folder / "state"),
            "netns-dir": str(folder / "netns"),
        }
        file = folder / "cnid.yaml"
        file.write_text(json.dumps(configuration))  # JSON is YAML
        environment = {**os.environ, "CONTRAIL_CNI_CONFIG": str(folder / "none.json")}
        command = [str(BINARIES / "contrail-cnid"), "--config", str(file)]
        process = ServedProcess(command, listen=listen, log=folder / "cnid.log", environment=environment)
        # It is ready some milliseconds before it accepts connections.
        await self._start(process, lambda: process.wait_until(lambda: _accepts(folder / "cni.sock"), what="accepting"))
        return process

    async def _start(self, process: ServedProcess, wait: Callable[[], None]) -> None:
        process.launch()
        self._stack.callback(process.kill)
        self.started.append(process)
        await asyncio.to_thread(wait)


def _serves_pod(process: AgentProcess) -> bool:
    return bool(process.interfaces("blue", "web-0"))


def _accepts(daemon_socket: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(daemon_socket)) == 0


def _report(agent_socket: Path) -> None:
    """Reports as the daemon does."""
    connection = http.client.HTTPConnection("localhost", timeout=10)
    with contextlib.closing(connection), socket.socket(socket.AF_UNIX) as connected:
        connected.connect(str(agent_socket))
        connection.sock = connected
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/datapath?follower=test-1", json.dumps(_REPORT), headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()


def _fail(daemon_socket: Path) -> None:
    """Calls ADD without a container."""
    with DaemonClient(str(daemon_socket)) as client:
        client.ask({"CNI_COMMAND": "ADD"}, b"{}")
        client.acknowledged()
        assert client.answered().status == 1


def _read(process: ServedProcess, metrics: Metrics) -> None:
    with urllib.request.urlopen(f"http://{process.listen}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = metrics[sample.name]
            for label, value in sample.labels.items():
                labels[label].add(value)
