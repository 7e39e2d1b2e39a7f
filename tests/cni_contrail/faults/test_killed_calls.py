"""Killed calls cannot clean up: the next ADD or DEL of the container does.

`test_killed_calls_at_every_step` checks the state after a kill at any step, this module how it is reached.
"""

import json
import subprocess
import threading
from collections.abc import Callable

import pytest

from tests.cni_contrail.conftest import until
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ReceivedRequest, Reply, ScriptedAgent, ServePod, Vmi

Kill = Callable[[str], None]


@pytest.fixture
def vmis(agent: ScriptedAgent, serve_pod: ServePod) -> list[Vmi]:
    return serve_pod(agent, 3)


@pytest.fixture
def kill_add(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, vmis: list[Vmi]) -> Kill:
    """Starts an ADD and kills it at a point."""

    def kill(point: str) -> None:
        running: list[subprocess.Popen[bytes]] = []
        killed = threading.Event()

        def stop(seen: ReceivedRequest) -> Reply | None:
            if (seen.method, point) == ("GET", "waiting"):
                until(lambda: plugin.record_path(pod).exists())
            elif (seen.method, point) == ("POST", "created"):
                until(lambda: len(plugin.node.links()) == len(vmis))
            elif (seen.method, point) == ("POST", "plugged"):
                agent.default_reply(seen)
            elif (seen.method, point) != ("GET", "requested"):
                return None
            plugin.kill(running[0])
            running[0].wait(10)
            killed.set()
            return None

        agent.before(stop)
        running.append(plugin.start(plugin.environment("ADD", pod)))
        running[0].communicate(json.dumps(plugin.config()).encode(), timeout=10)
        assert running[0].returncode
        assert killed.wait(10)  # the call ends before its killer, in the agent's thread, has reaped the daemon
        agent.clear_behaviours()

    return kill


POINTS = ["requested", "waiting", "created", "plugged"]


@pytest.mark.parametrize("point", POINTS)
def test_del_after_a_killed_add_leaves_nothing(
    kill_add: Kill, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, point: str
) -> None:
    kill_add(point)
    plugin.delete(pod).succeeded()
    assert (plugin.node.links(), sandbox.links(), plugin.files(), agent.ports) == ([], [], [], {})


@pytest.mark.parametrize("point", POINTS)
def test_add_after_a_killed_add_attaches_the_pod(
    kill_add: Kill, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, vmis: list[Vmi], point: str
) -> None:
    kill_add(point)
    plugin.add(pod).succeeded()
    assert sandbox.links() == ["eth0", "eth1", "eth2"]
    assert len(plugin.node.links()) == 3
    assert agent.owners() == {vmi.uuid: pod.container for vmi in vmis}
    assert plugin.record(pod)["finished"]
    plugin.delete(pod).succeeded()
    assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})


def test_the_record_is_written_before_the_first_link_is_created(
    kill_add: Kill, plugin: Plugin, pod: PodSandbox
) -> None:
    kill_add("created")
    record = plugin.record(pod)
    assert not record["finished"]
    assert [each["plan"]["host_name"] for each in record["interfaces"]] == plugin.node.links()


def test_an_add_killed_while_waiting_leaves_a_record_without_interfaces(
    kill_add: Kill, plugin: Plugin, pod: PodSandbox
) -> None:
    kill_add("waiting")
    assert plugin.node.links() == []
    assert plugin.record(pod)["interfaces"] == []
    assert "did not finish" in plugin.add(pod).succeeded().stderr


def test_partially_created_links_are_created_again(
    kill_add: Kill, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    """As if the ADD had been killed between two links, or before they had their alias."""
    kill_add("created")
    first, second, _third = plugin.node.links()
    plugin.node.ip("link", "delete", first)
    plugin.node.ip("link", "set", second, "alias", "")
    plugin.add(pod).succeeded()
    assert sorted(sandbox.links()) == ["eth0", "eth1", "eth2"]


def test_a_retried_delegated_attachment_keeps_its_interface(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, vmis: list[Vmi]
) -> None:
    same = [vmi.annotated(nad="demo/net-1", config_name="net-1") for vmi in vmis[1:]]
    agent.serve(pod.vm_name, [vmis[0], *same])
    plugin.add(pod, "x", name="net-1").succeeded()
    plugin.add(pod, "y", name="net-1").succeeded()
    for ifname in ("x", "y"):  # as if both had been killed at their very end
        path = plugin.record_path(pod, ifname)
        path.write_text(json.dumps({**json.loads(path.read_text()), "finished": False}))
    result = plugin.add(pod, "y", name="net-1").succeeded().document
    assert result["interfaces"][1]["mac"] == vmis[2].mac
    result = plugin.add(pod, "x", name="net-1").succeeded().document
    assert result["interfaces"][1]["mac"] == vmis[1].mac


@pytest.mark.parametrize("ifname", ["eth0", "net1"])
def test_default_routes_that_it_replaced_are_restored_by_the_next_call(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, vmis: list[Vmi], ifname: str
) -> None:
    agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(default_gw="ipv4"), vmis[2]])
    sandbox.ip("link", "add", "mgmt", "type", "veth", "peer", "name", "mgmt-end", "netns", plugin.node.name)
    plugin.node.ip("link", "set", "mgmt-end", "up")
    sandbox.ip("link", "set", "mgmt", "up")
    sandbox.ip("address", "add", "192.0.2.2/24", "dev", "mgmt")
    sandbox.ip("route", "add", "default", "via", "192.0.2.1")
    plugin.add(pod, "net1", name="net-1").succeeded()
    path = plugin.record_path(pod, "net1")
    path.write_text(json.dumps({**json.loads(path.read_text()), "finished": False}))
    if ifname == "net1":  # another try
        plugin.add(pod, "net1", name="net-1").succeeded()
        assert "default via 10.1.1.1 dev net1" in sandbox.ip("route")
        assert [each["gateway"] for each in plugin.record(pod, "net1")["replaced"]] == ["192.0.2.1"]
    plugin.delete(pod, "net1", name="net-1").succeeded()
    assert "default via 192.0.2.1 dev mgmt" in sandbox.ip("route")


def test_a_killed_del_is_continued_by_the_next_del(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, vmis: list[Vmi]
) -> None:
    plugin.add(pod).succeeded()
    came = agent.stall("DELETE")
    process = plugin.start_with(plugin.environment("DEL", pod), json.dumps(plugin.config()))
    assert came.wait(10)
    plugin.kill(process)
    process.communicate(timeout=10)
    assert plugin.node.links() == []
    assert len(plugin.files()) == 1
    agent.clear_behaviours()
    plugin.delete(pod).succeeded()
    assert (plugin.files(), agent.ports) == ([], {})


def test_an_add_does_not_wait_for_a_killed_call(kill_add: Kill, plugin: Plugin, pod: PodSandbox) -> None:
    """The kernel releases the lock of a killed process at once."""
    kill_add("created")
    environment = plugin.environment("DEL", pod)
    process = plugin.start_with(environment, json.dumps(plugin.config()))
    process.communicate(timeout=5)
    assert process.returncode == 0
