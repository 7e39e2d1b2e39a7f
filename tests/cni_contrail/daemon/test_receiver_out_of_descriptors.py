"""A daemon that runs out of descriptors recovers when some are free again."""

import os
import resource
from collections.abc import Iterator

import pytest

from tests.cni_contrail.conftest import until
from tests.support.daemon_client import DaemonClient
from tests.support.plugin import Plugin
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent

pytestmark = pytest.mark.machine

SPARE = 24
FAILURE = b"socket: cannot accept connections: Too many open files"


def opened(caller: ShimAndDaemon) -> int:
    return len(os.listdir(f"/proc/{caller.pid}/fd"))


@pytest.fixture
def connections(caller: ShimAndDaemon) -> Iterator[list[DaemonClient]]:
    """Silent connections, more than the daemon can open."""
    caller.daemon()
    process, most = caller.pid, opened(caller) + SPARE
    resource.prlimit(process, resource.RLIMIT_NOFILE, (most, most))
    clients = [DaemonClient(caller.socket_path) for _ in range(2 * SPARE)]
    until(lambda: len(os.listdir(f"/proc/{process}/fd")) >= most)
    yield clients
    for client in clients:
        client.hang_up()


def test_calls_are_served_when_descriptors_are_free_again(
    connections: list[DaemonClient], agent: ScriptedAgent, plugin: Plugin, caller: ShimAndDaemon
) -> None:
    process, most = caller.pid, opened(caller)
    until(lambda: FAILURE in caller.daemon().logged())
    for client in connections:
        client.hang_up()
    until(lambda: len(os.listdir(f"/proc/{process}/fd")) < most - SPARE / 2)
    plugin.status().succeeded()
    assert caller.daemon().logged().count(FAILURE) == 1


def test_the_daemon_stops_in_time(connections: list[DaemonClient], caller: ShimAndDaemon) -> None:
    caller.stop()
