"""A daemon that starts handles what its predecessor left: pending notifications and orphaned attachments."""

import json
import os
import subprocess
import threading

import pytest

from cni_contrail.daemon.configuration import DaemonConfiguration
from cni_contrail.daemon.process import Daemon
from tests.cni_contrail.conftest import Attach, until
from tests.support.plugin import Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon, listener_of
from tests.support.scripted_agents import ScriptedAgent, ServePod

_PAUSE = 4.0  # seconds without a daemon, as until the next pod of the DaemonSet runs


def start_del(plugin: Plugin, caller: ShimAndDaemon, pod: PodSandbox) -> subprocess.Popen[bytes]:
    deleting = caller.start_without_daemon(plugin.environment("DEL", pod))
    assert deleting.stdin is not None
    deleting.stdin.write(json.dumps(plugin.config()).encode())
    deleting.stdin.close()
    deleting.stdin = None
    return deleting


def is_listening(caller: ShimAndDaemon) -> bool:
    try:
        listener_of(caller.socket_path)
    except OSError:
        return False
    return True


@pytest.fixture(autouse=True)
def settings(plugin: Plugin, caller: ShimAndDaemon) -> None:
    """The daemon's own settings name the state directory, so that maintenance covers it."""
    caller.configuration |= plugin.settings


def test_pending_notifications_are_sent_at_start(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, caller: ShimAndDaemon
) -> None:
    serve_pod(agent, 2)
    plugin.add(pod).succeeded()
    agent.stop()
    plugin.delete(pod).succeeded()
    caller.stop()
    agent.start()
    assert len(agent.ports) == 2
    caller.daemon()
    until(lambda: agent.ports == {})
    until(lambda: plugin.files() == [])


def test_orphaned_attachments_are_swept_at_start(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, caller: ShimAndDaemon
) -> None:
    pods = [attach(agent, f"pod-{number}", interfaces=2) for number in range(8)]
    caller.stop()
    for pod in pods[1:]:
        subprocess.run(["ip", "netns", "del", os.path.basename(pod.netns)], check=True)
    until(lambda: len(plugin.node.links()) == 2)
    caller.daemon()
    until(lambda: set(agent.owners().values()) == {pods[0].container})
    assert plugin.record_path(pods[0]).exists()


def test_calls_wait_for_a_daemon_that_is_being_replaced(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, caller: ShimAndDaemon
) -> None:
    serve_pod(agent, 2)
    plugin.add(pod).succeeded()
    caller.stop()
    deleting = start_del(plugin, caller, pod)
    caller.daemon()
    stdout, _ = deleting.communicate(timeout=10)
    assert (deleting.returncode, stdout) == (0, b"")
    assert agent.ports == {}


def test_no_del_fails_while_the_daemon_is_replaced(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, caller: ShimAndDaemon
) -> None:
    """Half of them run when it is stopped and are drained; the others find no daemon until the next one serves."""
    pods = [attach(agent, f"pod-{number}", interfaces=2) for number in range(8)]
    came = agent.stall("DELETE")
    running = [start_del(plugin, caller, pod) for pod in pods[:4]]
    assert came.wait(10)
    until(lambda: len(agent.received("DELETE")) == 4)
    stopping = threading.Thread(target=caller.stop)
    stopping.start()
    until(lambda: not is_listening(caller))
    waiting = [start_del(plugin, caller, pod) for pod in pods[4:]]
    stopping.join(10)
    threading.Event().wait(_PAUSE)
    caller.daemon()
    for deleting in (*running, *waiting):
        stdout, _ = deleting.communicate(timeout=20)
        assert (deleting.returncode, stdout) == (0, b"")
    assert plugin.node.links() == []


def test_stopping_drains_running_calls(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, caller: ShimAndDaemon
) -> None:
    """A DEL whose agent is slow is not cut off."""
    serve_pod(agent, 2)
    plugin.add(pod).succeeded()
    came = agent.stall("DELETE")
    deleting = plugin.start_with(plugin.environment("DEL", pod), json.dumps(plugin.config()))
    assert came.wait(10)
    caller.stop()
    stdout, _ = deleting.communicate(timeout=10)
    assert (deleting.returncode, stdout) == (0, b"")
    assert plugin.node.links() == []


def test_the_daemon_maintains_the_state_directory_of_its_own_settings(plugin: Plugin) -> None:
    daemon = Daemon(DaemonConfiguration(settings={"state-dir": str(plugin.state_dir)}), json_lines=False)
    daemon._node()
    assert daemon._context.maintains(str(plugin.state_dir))
    assert not daemon._context.maintains("/named/by/a/network/configuration")
