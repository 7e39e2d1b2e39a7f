"""A hundred ADDs that wait for their lists do not delay other calls."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cni_contrail.conftest import until
from tests.cni_contrail.daemon.conftest import Ask, error
from tests.support.daemon_client import DaemonClient
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent, make_vmis

pytestmark = pytest.mark.machine

ADDS = 100


@pytest.fixture
def waiting(agent: ScriptedAgent, plugin: Plugin, sandbox: Netns, ask: Ask) -> Iterator[list[DaemonClient]]:
    settings = {"poll-timeout": 3, "poll-retries": 20}
    pods = [PodSandbox(sandbox.path, name=f"waits-{number}") for number in range(ADDS)]
    clients = [ask("ADD", pod, settings=settings) for pod in pods]
    until(lambda: len(list(plugin.state_dir.glob("*/eth0.json"))) == ADDS)
    yield clients
    for client in clients:
        client.hang_up()
    until(lambda: not plugin.files())


def test_other_calls_are_served_while_adds_wait(
    waiting: list[DaemonClient], agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> None:
    pod = PodSandbox(make_netns("pod").path, name="served")
    agent.serve(pod.vm_name, make_vmis(3, uid=pod.uid))
    started = time.monotonic()
    result = plugin.add(pod, version="1.1.0").succeeded().document
    plugin.check(pod, previous=result, version="1.1.0").succeeded()
    plugin.status().succeeded()
    plugin.delete(pod).succeeded()
    assert time.monotonic() - started < 5


def test_waiting_adds_take_little_memory(waiting: list[DaemonClient], caller: ShimAndDaemon) -> None:
    status = Path(f"/proc/{caller.pid}/status").read_text()
    assert int(status.split("VmRSS:")[1].split()[0]) < 60 * 1024


def test_waiting_adds_fail_with_code_11_when_the_daemon_stops(
    waiting: list[DaemonClient], plugin: Plugin, caller: ShimAndDaemon
) -> None:
    started = time.monotonic()
    caller.stop()
    assert time.monotonic() - started < 5
    for client in waiting:
        assert error(client.answered(receipt=False), 11) == "the node daemon is stopping"
    assert plugin.files() == []


def test_adds_that_ask_for_short_pauses_keep_nobody_waiting_and_send_few_requests(
    vrouter_agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns], ask: Ask
) -> None:
    """The Contrail vrouter agent answers at once that it has no list, so each pause ends with another request."""
    settings = {"mode": "delegated", "poll-timeout": 0.005, "poll-retries": 10000}
    netns = make_netns("pod").path
    names = [f"waits-{number}" for number in range(8)]
    clients = [ask("ADD", PodSandbox(netns, name=name), settings=settings) for name in names]
    started = time.monotonic()
    until(lambda: len(vrouter_agent.received("GET")) > 3 * len(names))  # all are past their first pause, which is long
    served = PodSandbox(make_netns("pod").path, name="served")
    vrouter_agent.serve(served.vm_name, make_vmis(1, uid=served.uid))
    added = ask("ADD", served)
    until(lambda: bool(vrouter_agent.ports))
    added.answered()
    requests = len([seen for seen in vrouter_agent.received("GET") if "waits-" in seen.path])
    assert requests < len(names) * (8 + time.monotonic() - started)  # the first pauses are short
    for client in (*clients, added):
        client.hang_up()
    plugin.delete(served).succeeded()
    until(lambda: not plugin.files())
