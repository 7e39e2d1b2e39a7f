"""An ADD is rolled back if its runtime hangs up or rejects the result, and cancelled by DEL of its attachment."""

import contextlib
import fcntl
import json
import os
import threading
import time

import pytest

from tests.cni_contrail.conftest import until
from tests.cni_contrail.daemon.conftest import Ask, error
from tests.support.netns import Netns
from tests.support.plugin import LONG_POLL, Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ReceivedRequest, Reply, ScriptedAgent, ServePod

WAITING = {"poll-timeout": 3, "poll-retries": 20}


def is_rolled_back(plugin: Plugin, agent: ScriptedAgent) -> bool:
    return (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})


def test_hanging_up_cancels_an_add_that_waits_for_its_list(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, ask: Ask
) -> None:
    client = ask("ADD", pod, settings=WAITING)
    until(plugin.record_path(pod).exists)
    started = time.monotonic()
    client.hang_up()
    until(lambda: not plugin.files())
    assert time.monotonic() - started < 1


def test_killing_the_shim_cancels_the_add(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox) -> None:
    adding = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config(settings=WAITING)))
    until(plugin.record_path(pod).exists)
    adding.kill()
    adding.communicate(timeout=10)
    until(lambda: not plugin.files())


def test_hanging_up_while_ports_are_plugged_rolls_back_the_links(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, ask: Ask
) -> None:
    serve_pod(agent, 3)
    received = threading.Event()

    def lose_response(seen: ReceivedRequest) -> Reply | None:
        """The agent plugs the ports, but its response is lost."""
        if seen.method != "POST":
            return None
        agent.default_reply(seen)
        received.set()
        until(lambda: agent.ports == {})
        return None

    agent.before(lose_response)
    client = ask("ADD", pod, settings=LONG_POLL)
    assert received.wait(10)
    until(lambda: len(plugin.node.links()) == 3)
    client.hang_up()
    agent.clear_behaviours()
    until(lambda: not plugin.node.links() and not plugin.files())


def test_an_add_whose_result_gets_no_receipt_is_rolled_back(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, ask: Ask
) -> None:
    serve_pod(agent, 2)
    client = ask("ADD", pod)
    assert client.answered(receipt=False).status == 0
    assert len(plugin.node.links()) == 2
    client.hang_up()
    until(lambda: is_rolled_back(plugin, agent))


def test_a_shim_that_is_slow_to_send_the_receipt_keeps_the_attachment(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, ask: Ask
) -> None:
    serve_pod(agent, 2)
    client = ask("ADD", pod)
    result = json.loads(client.answered(receipt=False).output)
    started = time.monotonic()
    assert client.is_closed()
    assert 1.5 < time.monotonic() - started < 4
    client.hang_up()
    plugin.check(pod, previous=result).succeeded()


def test_an_add_that_was_rolled_back_can_be_repeated(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod, ask: Ask
) -> None:
    serve_pod(agent, 2)
    client = ask("ADD", pod)
    client.answered(receipt=False)
    client.hang_up()
    until(lambda: not plugin.files())
    plugin.add(pod).succeeded()
    assert sandbox.links() == ["eth0", "eth1"]


@pytest.mark.parametrize("command", ["DEL", "CHECK", "STATUS"])
def test_other_commands_complete_even_if_the_runtime_hangs_up(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, ask: Ask, command: str
) -> None:
    serve_pod(agent, 2)
    result = plugin.add(pod, version="1.1.0").succeeded().document
    ask(command, pod, version="1.1.0", prevResult=result).hang_up()
    if command == "DEL":
        until(lambda: is_rolled_back(plugin, agent))
    else:
        plugin.check(pod, previous=result, version="1.1.0").succeeded()


def test_a_del_cancels_the_add_of_its_attachment_at_once(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, ask: Ask
) -> None:
    with ask("ADD", pod, settings=WAITING) as client:
        until(plugin.record_path(pod).exists)
        started = time.monotonic()
        plugin.delete(pod).succeeded()
        assert "deleted while ADD was waiting for its interfaces" in error(client.answered(), 11)
        assert time.monotonic() - started < 1
    until(lambda: is_rolled_back(plugin, agent))


def test_a_del_does_not_cancel_adds_of_other_attachments(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod, ask: Ask
) -> None:
    with ask("ADD", pod, "net1", name="net-1", settings=WAITING) as client:
        until(plugin.record_path(pod, "net1").exists)
        plugin.delete(pod, "net2", name="net-2").succeeded()
        plugin.delete(PodSandbox(pod.netns, name="another"), "net1", name="net-1").succeeded()
        serve_pod(agent, 3)
        assert client.answered().status == 0
    assert sandbox.links() == ["net1"]


def test_the_sandbox_descriptor_is_closed_with_its_request(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, ask: Ask, caller: ShimAndDaemon
) -> None:
    def open_sandbox_descriptors() -> list[str]:
        folder = f"/proc/{caller.pid}/fd"
        links = []
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(f"{folder}/{name}"))
        return [link for link in links if link == pod.netns]

    serve_pod(agent, 2)
    plugin.add(pod).succeeded()
    plugin.delete(pod).succeeded()
    agent.serve(pod.vm_name, [])
    client = ask("ADD", pod, settings=WAITING)
    until(plugin.record_path(pod).exists)
    assert open_sandbox_descriptors()
    client.hang_up()
    until(lambda: not open_sandbox_descriptors())


def test_hanging_up_ends_a_check(
    agent: ScriptedAgent, plugin: Plugin, caller: ShimAndDaemon, pod: PodSandbox, serve_pod: ServePod, ask: Ask
) -> None:
    """It has nobody to answer; its end shows in the log."""
    serve_pod(agent)
    result = plugin.add(pod).succeeded().document
    lock = os.open(plugin.state_dir / pod.container, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    client = ask("CHECK", pod, prevResult=result)
    client.hang_up()
    os.close(lock)
    until(lambda: "CHECK failed with code 11: the runtime closed the connection" in caller.daemon().logged().decode())
