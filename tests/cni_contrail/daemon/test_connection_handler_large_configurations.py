"""Large configurations, which a tenant may write: few are in memory at a time, and other calls do not wait for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cni_contrail.conftest import until
from tests.cni_contrail.daemon.conftest import Ask
from tests.support.daemon_client import DaemonClient
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent

AT_A_TIME = 4
WAITING = {"poll-timeout": 3, "poll-retries": 20}


def large(number: int) -> dict[str, object]:
    """The keys of a configuration of 480 KB that take 30 times as much when decoded."""
    return {"settings": WAITING, "args": {"cni": {"number": number, "values": [{"a": 1}] * 48_000}}}


def begun(plugin: Plugin) -> int:
    """Number of ADDs that wait for the agent."""
    return len(list(plugin.state_dir.glob("*/eth0.json")))


@pytest.fixture
def adds(agent: ScriptedAgent, plugin: Plugin, sandbox: Netns, ask: Ask) -> Iterator[list[DaemonClient]]:
    """ADDs that wait for a list that never appears."""
    clients = [ask("ADD", PodSandbox(sandbox.path, name=f"large-{each}"), **large(each)) for each in range(20)]
    until(lambda: begun(plugin) >= AT_A_TIME)
    yield clients
    for client in clients:
        client.hang_up()
    until(lambda: not plugin.files())


def test_few_are_worked_on_at_a_time_and_other_calls_are_served(
    adds: list[DaemonClient], plugin: Plugin, pod: PodSandbox, caller: ShimAndDaemon, ask: Ask
) -> None:
    with ask("ADD", pod, settings=WAITING):
        until(plugin.record_path(pod).exists)
        assert begun(plugin) == AT_A_TIME + 1
        status = Path(f"/proc/{caller.pid}/status").read_text()
        assert int(status.split("VmHWM:")[1].split()[0]) < 256 * 1024
    until(lambda: begun(plugin) == AT_A_TIME)


def test_the_next_one_begins_when_one_has_ended(adds: list[DaemonClient], plugin: Plugin) -> None:
    first = {path.parent.name for path in plugin.state_dir.glob("*/eth0.json")}
    for client in adds[:AT_A_TIME]:
        client.hang_up()
    until(lambda: len({path.parent.name for path in plugin.state_dir.glob("*/eth0.json")} - first) == AT_A_TIME)


def test_the_long_list_of_gc_does_not_wait_for_them(adds: list[DaemonClient], plugin: Plugin, sandbox: Netns) -> None:
    """Runtimes list every attachment of the node, and write it themselves."""
    plugin.gc([PodSandbox(sandbox.path) for _ in range(200)]).succeeded()
    assert begun(plugin) == AT_A_TIME
