"""ADD creates everything or leaves nothing: each of its steps fails in turn."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ReceivedRequest, Reply, ScriptedAgent, ServePod, Subnet


@pytest.fixture
def nothing_is_left(plugin: Plugin, sandbox: Netns, agent: ScriptedAgent) -> Callable[[], None]:
    def check() -> None:
        assert (plugin.node.links(), sandbox.links(), plugin.files()) == ([], [], [])
        assert agent.ports == {}
        assert "default" not in sandbox.ip("route")

    return check


def test_a_rejected_port_is_rolled_back(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, nothing_is_left: Callable[[], None]
) -> None:
    serve_pod(agent, 3)
    agent.reject("POST", text="Invalid VN uuid")
    message = plugin.add(pod).failed(101)
    assert "POST /vm" in message
    assert "Invalid VN uuid" in message
    nothing_is_left()


def test_a_lost_response_to_the_ports_is_rolled_back(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, nothing_is_left: Callable[[], None]
) -> None:
    serve_pod(agent, 2)

    def plug_and_drop(seen: ReceivedRequest) -> Reply | None:
        if seen.method == "POST":
            agent.default_reply(seen)
            return Reply(503, {"error": "{ restarting }"})
        return None

    agent.before(plug_and_drop)
    assert "restarting" in plugin.add(pod).failed(11)
    nothing_is_left()


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_kernel_error_for_one_interface_is_rolled_back(
    agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    serve_pod: ServePod,
    nothing_is_left: Callable[[], None],
    position: int,
) -> None:
    vmis = serve_pod(agent, 3)
    unreachable = ({"dst": "10.9.0.1/16", "gw": "10.1.0.9"},)  # host bits: the kernel takes no such destination
    vmis[position] = replace(vmis[position], routes=unreachable)
    agent.serve(pod.vm_name, vmis)
    message = plugin.add(pod).failed(104)
    assert f"eth{position}" in message
    assert "10.9.0.1/16" in message
    nothing_is_left()


def test_an_unwritable_sysctl_is_rolled_back(
    agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    serve_pod: ServePod,
    nothing_is_left: Callable[[], None],
    tmp_path: Path,
) -> None:
    serve_pod(agent, 2)
    empty = tmp_path / "sys"
    (empty / "net/ipv6").mkdir(parents=True)
    assert str(empty) in plugin.add(pod, settings={"sysctl-dir": str(empty)}).failed(104)
    nothing_is_left()


def test_without_a_state_directory_nothing_is_created(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, nothing_is_left: Callable[[], None]
) -> None:
    serve_pod(agent)
    assert "/proc/nothing" in plugin.add(pod, settings={"state-dir": "/proc/nothing/here"}).failed(5)
    nothing_is_left()


def test_without_a_record_nothing_is_created(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, sandbox: Netns
) -> None:
    serve_pod(agent)
    blocked = plugin.record_path(pod)
    blocked.mkdir(parents=True)
    assert str(blocked) in plugin.add(pod).failed(5)
    assert (plugin.node.links(), sandbox.links(), plugin.files()) == ([], [], [])


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"mac-address": "02:00:00:00:00"}, "mac-address"),
        ({"ip-address": "10.1.0.256"}, "ip-address"),
        ({"plen": 33}, "plen"),
        ({"v6-gateway": "10.1.0.1"}, "v6-gateway"),
        ({"annotations": ["{index:1/2}", "{default-gw:both}"]}, "default-gw"),
    ],
)
def test_an_invalid_interface_in_the_list_creates_nothing(
    agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    serve_pod: ServePod,
    nothing_is_left: Callable[[], None],
    change: dict[str, Any],
    culprit: str,
) -> None:
    vmis = serve_pod(agent, 2)

    def answer(seen: ReceivedRequest) -> Reply | None:
        reply = agent.default_reply(seen)
        reply.document[1].update(change)
        return reply

    agent.before(answer)
    message = plugin.add(pod).failed(100)
    assert "item 1" in message
    assert vmis[1].uuid in message
    assert culprit in message
    nothing_is_left()


def test_a_result_without_a_form_in_the_version_creates_nothing(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, nothing_is_left: Callable[[], None]
) -> None:
    serve_pod(agent, 2, change=lambda vmi: replace(vmi, subnets=()))
    plugin.add(pod, version="0.1.0").failed(7)
    nothing_is_left()


def test_an_ipv6_address_with_a_too_small_mtu_is_rolled_back(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, nothing_is_left: Callable[[], None]
) -> None:
    serve_pod(agent, change=lambda vmi: replace(vmi, mtu=1000, subnets=(Subnet("fd00::5", 64),)))
    assert "eth0" in plugin.add(pod).failed(104)
    nothing_is_left()


def test_add_succeeds_after_a_failed_add(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    vmis = serve_pod(agent, 2)
    agent.reject("POST")
    plugin.add(pod).failed(101)
    plugin.delete(pod).succeeded()
    agent.clear_behaviours()
    plugin.add(pod).succeeded()
    assert sandbox.links() == ["eth0", "eth1"]
    assert agent.owners() == {vmi.uuid: pod.container for vmi in vmis}


def test_standard_output_holds_one_document_or_nothing(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    serve_pod(agent)
    added = plugin.add(pod)
    assert json.loads(added.stdout)
    assert added.stdout.count("\n") == 1
    assert plugin.check(pod, previous=added.document).stdout == ""
    assert plugin.delete(pod).stdout == ""
