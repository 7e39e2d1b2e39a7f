"""500 calls at the same moment: each is acknowledged in time and succeeds, and nothing is left in the end."""

import json
import subprocess
import uuid
from collections.abc import Iterator, Sequence

import pytest

from cni_contrail.deadline import Deadline
from contrail_service.file_limit import raise_file_limit
from tests.support.daemon_client import DaemonClient
from tests.support.plugin import LONG_POLL, Outcome, Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent, make_vmis

pytestmark = [pytest.mark.machine, pytest.mark.timeout(300)]

CALLS = 500
TIMEOUT = 120  # seconds


@pytest.fixture
def pods(agent: ScriptedAgent) -> Iterator[list[PodSandbox]]:
    """Pods with sandboxes of their own, all made by one process."""
    raise_file_limit()
    run = uuid.uuid4().hex[:12]
    names = [f"ct-many-{run}-{number}" for number in range(CALLS)]
    pods = [PodSandbox(f"/run/netns/{name}", name=f"web-{number}") for number, name in enumerate(names)]
    for pod in pods:
        agent.serve(pod.vm_name, make_vmis(1, uid=pod.uid))
    ip_netns("add", names)
    yield pods
    ip_netns("del", names)


def ip_netns(action: str, names: Sequence[str]) -> None:
    lines = "".join(f"netns {action} {name}\n" for name in names)
    subprocess.run(["ip", "-batch", "-"], input=lines, text=True, check=True, timeout=TIMEOUT)


def call_at_once(plugin: Plugin, command: str, pods: Sequence[PodSandbox]) -> list[Outcome]:
    """Starts a shim for each pod, which waits for its standard input; then lets all of them run."""
    config = json.dumps(plugin.config(settings=LONG_POLL)).encode()
    shims = [plugin.start(plugin.environment(command, pod)) for pod in pods]
    for shim in shims:
        assert shim.stdin is not None
        shim.stdin.write(config)
        shim.stdin.close()
        shim.stdin = None
    outputs = [shim.communicate(timeout=TIMEOUT) for shim in shims]
    return [
        Outcome(shim.returncode, stdout.decode(), stderr.decode())
        for shim, (stdout, stderr) in zip(shims, outputs, strict=True)
    ]


def ask_at_once(caller: ShimAndDaemon, plugin: Plugin, command: str, pods: Sequence[PodSandbox]) -> list[DaemonClient]:
    """Sends a call for each pod; then waits until all are acknowledged."""
    clients = [DaemonClient(caller.socket_path) for _ in pods]
    config = json.dumps(plugin.config(settings=LONG_POLL)).encode()
    for client, pod in zip(clients, pods, strict=True):
        client.ask(plugin.environment(command, pod), config)
    for client in clients:
        client.acknowledged()
    return clients


def failures(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.stdout for outcome in outcomes if outcome.status]


def await_nothing_left(plugin: Plugin, agent: ScriptedAgent) -> None:
    for _ in Deadline(TIMEOUT).attempts(0.01, 0.5):
        left = plugin.node.links(), plugin.files(), agent.ports
        if left == ([], [], {}):
            return
    raise AssertionError(left)


def test_500_adds_and_500_dels_succeed(
    agent: ScriptedAgent, plugin: Plugin, pods: list[PodSandbox], caller: ShimAndDaemon
) -> None:
    caller.daemon()
    assert failures(call_at_once(plugin, "ADD", pods)) == []
    assert len(plugin.node.links()) == len(agent.ports) == CALLS
    assert failures(call_at_once(plugin, "DEL", pods)) == []
    await_nothing_left(plugin, agent)


def test_500_adds_whose_runtimes_hang_up_leave_nothing(
    agent: ScriptedAgent, plugin: Plugin, pods: list[PodSandbox], caller: ShimAndDaemon
) -> None:
    caller.daemon()
    for client in ask_at_once(caller, plugin, "ADD", pods):
        client.hang_up()
    assert failures(call_at_once(plugin, "DEL", pods[:1])) == []
    await_nothing_left(plugin, agent)


def test_500_dels_whose_runtimes_hang_up_are_done(
    agent: ScriptedAgent, plugin: Plugin, pods: list[PodSandbox], caller: ShimAndDaemon
) -> None:
    caller.daemon()
    assert failures(call_at_once(plugin, "ADD", pods)) == []
    for client in ask_at_once(caller, plugin, "DEL", pods):
        client.hang_up()
    await_nothing_left(plugin, agent)
