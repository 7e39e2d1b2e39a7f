"""A runtime that hangs up, or does not take the result, has no attachment; a DEL ends the ADD that it is about."""

import contextlib
import json
import os
import threading
import time

import pytest

from tests.cni_contrail.conftest import until
from tests.cni_contrail.daemon.conftest import Ask, error
from tests.support.agents import Reply, ScriptedAgent, Seen, ServePod
from tests.support.callers import ShimAndDaemon
from tests.support.netns import Netns
from tests.support.plugin import PATIENT, Plugin, PodSandbox

WAITING = {"poll-timeout": 3, "poll-retries": 20}


def nothing_is_left(plugin: Plugin, agent: ScriptedAgent) -> bool:
    return (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})


def test_hanging_up_ends_an_add_that_waits_for_its_list(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, ask: Ask
) -> None:
    client = ask("ADD", pod, settings=WAITING)
    until(plugin.record_path(pod).exists)
    begun = time.monotonic()
    client.hang_up()
    until(lambda: not plugin.files())
    assert time.monotonic() - begun < 1


def test_killing_the_shim_is_hanging_up(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox) -> None:
    adding = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config(settings=WAITING)))
    until(plugin.record_path(pod).exists)
    adding.kill()
    adding.communicate(timeout=10)
    until(lambda: not plugin.files())


def test_hanging_up_while_the_agent_is_told_of_the_ports_undoes_the_links(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, ask: Ask
) -> None:
    serve_pod(agent, 3)
    came = threading.Event()

    def lose(seen: Seen) -> Reply | None:
        """The agent takes the ports, and its answer does not come."""
        if seen.method != "POST":
            return None
        agent.usual(seen)
        came.set()
        until(lambda: agent.ports == {})
        return None

    agent.before(lose)
    client = ask("ADD", pod, settings=PATIENT)
    assert came.wait(10)
    until(lambda: len(plugin.node.links()) == 3)
    client.hang_up()
    agent.behave()
    until(lambda: not plugin.node.links() and not plugin.files())


def test_a_result_that_nobody_takes_is_undone(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, ask: Ask
) -> None:
    serve_pod(agent, 2)
    client = ask("ADD", pod)
    assert client.answered(receipt=False).status == 0
    assert len(plugin.node.links()) == 2
    client.hang_up()
    until(lambda: nothing_is_left(plugin, agent))


def test_a_shim_that_is_slow_to_get_rid_of_the_result_keeps_the_attachment(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, ask: Ask
) -> None:
    serve_pod(agent, 2)
    client = ask("ADD", pod)
    result = json.loads(client.answered(receipt=False).output)
    begun = time.monotonic()
    assert client.is_closed()
    assert 1.5 < time.monotonic() - begun < 4
    client.hang_up()
    plugin.check(pod, previous=result).succeeded()


def test_what_was_undone_can_be_done_again(
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
def test_other_commands_are_done_whether_or_not_somebody_takes_the_answer(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, ask: Ask, command: str
) -> None:
    serve_pod(agent, 2)
    result = plugin.add(pod, version="1.1.0").succeeded().document
    ask(command, pod, version="1.1.0", prevResult=result).hang_up()
    if command == "DEL":
        until(lambda: nothing_is_left(plugin, agent))
    else:
        plugin.check(pod, previous=result, version="1.1.0").succeeded()


def test_a_del_ends_the_add_of_its_attachment_at_once(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, ask: Ask
) -> None:
    with ask("ADD", pod, settings=WAITING) as client:
        until(plugin.record_path(pod).exists)
        begun = time.monotonic()
        plugin.delete(pod).succeeded()
        assert "deleted while ADD was waiting for its interfaces" in error(client.answered(), 11)
        assert time.monotonic() - begun < 1
    until(lambda: nothing_is_left(plugin, agent))


def test_a_del_leaves_the_adds_of_other_attachments(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod, ask: Ask
) -> None:
    with ask("ADD", pod, "net1", name="net-1", settings=WAITING) as client:
        until(plugin.record_path(pod, "net1").exists)
        plugin.delete(pod, "net2", name="net-2").succeeded()
        plugin.delete(PodSandbox(pod.netns, name="another"), "net1", name="net-1").succeeded()
        serve_pod(agent, 3)
        assert client.answered().status == 0
    assert sandbox.links() == ["net1"]


def test_no_descriptor_outlives_its_request(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, ask: Ask, caller: ShimAndDaemon
) -> None:
    def held() -> list[str]:
        folder = f"/proc/{caller.pid}/fd"
        links = []
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(f"{folder}/{name}"))
        return [link for link in links if link == pod.netns]

    serve_pod(agent, 2)
    plugin.add(pod).succeeded()
    plugin.delete(pod).succeeded()
    agent.serve(pod.machine_name, [])
    client = ask("ADD", pod, settings=WAITING)
    until(plugin.record_path(pod).exists)
    assert held()
    client.hang_up()
    until(lambda: not held())
