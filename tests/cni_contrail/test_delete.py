"""DEL removes everything of the attachment, in any circumstances, and nothing else."""

import fcntl
import json
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from cni_contrail.link.errors import KernelError
from cni_contrail.plugin import respond
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod, make_vmis


@pytest.fixture
def attached(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod) -> PodSandbox:
    """A pod with three interfaces, attached thick."""
    serve_pod(agent, 3)
    plugin.add(pod).succeeded()
    return pod


def is_clean(plugin: Plugin, agent: ScriptedAgent) -> bool:
    return (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})


def test_all_interfaces_are_removed(attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, sandbox: Netns) -> None:
    outcome = plugin.delete(attached).succeeded()
    assert outcome.stdout == ""
    assert is_clean(plugin, agent)
    assert sandbox.links() == []
    [deleted] = agent.received("DELETE")
    assert (deleted.path, deleted.query) == (f"/vm/{attached.uid}", {"vm-id": attached.container})
    assert not os.path.exists(plugin.state_dir / attached.container)


def test_a_delegated_interface_is_removed_alone(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    vmis = serve_pod(agent, 3)
    for number in (1, 2):
        plugin.add(pod, f"net{number}", name=f"net-{number}").succeeded()
    plugin.delete(pod, "net1", name="net-1").succeeded()
    assert sandbox.links() == ["net2"]
    [deleted] = agent.received("DELETE")
    assert deleted.path == f"/vm/{pod.uid}/{vmis[1].uuid}"
    plugin.delete(pod, "net2", name="net-2").succeeded()
    assert is_clean(plugin, agent)


def test_del_is_idempotent(attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin) -> None:
    for _ in range(3):
        plugin.delete(attached).succeeded()
    assert is_clean(plugin, agent)
    assert len(agent.received("DELETE")) == 1


@pytest.mark.parametrize("netns", ["", "/run/netns/not-there", "/etc/hostname"])
def test_the_sandbox_path_may_be_wrong(attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, netns: str) -> None:
    plugin.delete(attached, netns=netns).succeeded()
    assert is_clean(plugin, agent)


def test_the_sandbox_may_be_gone(attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, sandbox: Netns) -> None:
    sandbox.delete()
    plugin.delete(attached).succeeded()
    assert is_clean(plugin, agent)


def test_the_own_namespace_is_rejected_after_everything_is_removed(
    attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin
) -> None:
    """As the reference library does: a wrong path must not keep an attachment forever."""
    assert plugin.node.path in plugin.delete(attached, netns=plugin.node.path).failed(8)
    assert is_clean(plugin, agent)


def test_prev_result_is_not_needed(attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin) -> None:
    for previous in (None, {"cniVersion": "0.4.0"}, "garbage", {"interfaces": 5}):
        plugin.delete(attached, prevResult=previous).succeeded()
    assert is_clean(plugin, agent)


def test_del_without_an_add_succeeds(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox) -> None:
    plugin.delete(pod).succeeded()
    assert plugin.files() == []
    assert agent.requests == []
    assert not plugin.state_dir.exists()


def test_a_missing_link_is_no_error(attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin) -> None:
    plugin.node.ip("link", "delete", plugin.node.links()[1])
    plugin.delete(attached).succeeded()
    assert is_clean(plugin, agent)


def test_a_foreign_link_of_the_same_name_is_kept(attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin) -> None:
    name = plugin.node.links()[0]
    plugin.node.ip("link", "delete", name)
    plugin.node.ip("link", "add", name, "type", "veth", "peer", "name", "other")
    plugin.node.ip("link", "set", name, "alias", "somebody's")
    outcome = plugin.delete(attached).succeeded()
    assert sorted(plugin.node.links()) == sorted([name, "other"])
    assert name in outcome.stderr
    assert plugin.files() == []


def test_a_newer_container_of_the_same_pod_is_not_touched(
    attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> None:
    """kubelet creates a new sandbox before it deletes the old one."""
    netns = make_netns("pod")
    newer = PodSandbox(netns.path, name=attached.name, uid=attached.uid)
    plugin.add(newer).succeeded()
    plugin.delete(attached).succeeded()
    assert netns.links() == ["eth0", "eth1", "eth2"]
    assert len(plugin.node.links()) == 3
    assert set(agent.owners().values()) == {newer.container}
    plugin.delete(attached).succeeded()
    assert len(agent.ports) == 3


def test_a_recreated_pod_of_the_same_name_is_not_touched(
    attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> None:
    again = PodSandbox(make_netns("pod").path, name=attached.name)
    agent.serve(again.vm_name, make_vmis(2, uid=again.uid, subnet=7))
    plugin.add(again).succeeded()
    plugin.delete(attached).succeeded()
    assert len(plugin.node.links()) == 2
    assert set(agent.owners().values()) == {again.container}


def test_a_locked_container_times_out_with_code_11(
    attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls the function, with a shorter timeout than the ten seconds of a process."""
    monkeypatch.setattr("cni_contrail.commands.request.LOCK_TIMEOUT", 0.2)
    held = os.open(plugin.state_dir / attached.container, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    environment = plugin.environment("DEL", attached)
    environment["CONTRAIL_CNI_CONFIG"] = str(plugin.node_file)
    config = json.dumps(plugin.config()).encode()
    answer = respond(environment, lambda: config)
    assert json.loads(answer.output)["code"] == 11
    assert attached.container in answer.output
    assert len(plugin.node.links()) == 3

    threading.Timer(0.05, os.close, [held]).start()
    with plugin.node.inside():
        assert respond(environment, lambda: config).status == 0
    assert is_clean(plugin, agent)


def test_del_does_not_wait_for_a_waiting_add_which_then_fails(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    """The runtime has given up on the ADD without killing it."""
    came = threading.Event()
    agent.before(lambda seen: came.set())
    settings = {"poll-timeout": 3, "poll-retries": 20}
    adding = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config(settings=settings)))
    assert came.wait(10)
    plugin.delete(pod).succeeded()
    assert plugin.files() == []
    serve_pod(agent, 2)
    stdout, _ = adding.communicate(timeout=20)
    assert json.loads(stdout)["code"] == 11
    assert "deleted" in json.loads(stdout)["msg"]
    assert is_clean(plugin, agent)
    assert sandbox.links() == []


def test_a_waiting_add_does_not_replace_a_later_one(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    came = threading.Event()
    agent.before(lambda seen: came.set())
    settings = {"poll-timeout": 3, "poll-retries": 20}
    first = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config(settings=settings)))
    assert came.wait(10)
    plugin.delete(pod).succeeded()
    came.clear()
    second = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config(settings=settings)))
    assert came.wait(10)
    serve_pod(agent, 2)
    for process, status in ((first, 1), (second, 0)):
        process.communicate(timeout=20)
        assert process.returncode == status
    assert sandbox.links() == ["eth0", "eth1"]
    assert len(agent.ports) == 2


class TestWhenTheKernelKeepsALink:
    """Calls the function, with a kernel that fails."""

    @pytest.fixture(autouse=True)
    def kernel(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **_options: object) -> list[str]:
            raise KernelError("delete link tapx", 16, "Device or resource busy")

        monkeypatch.setattr("cni_contrail.commands.detach.remove_links", fail)

    def respond(self, plugin: Plugin, pod: PodSandbox, command: str) -> Any:
        environment = {**plugin.environment(command, pod), "CONTRAIL_CNI_CONFIG": str(plugin.node_file)}
        with plugin.node.inside():
            return json.loads(respond(environment, lambda: json.dumps(plugin.config()).encode()).output)

    def test_del_reports_it_and_can_be_retried(
        self, agent: ScriptedAgent, plugin: Plugin, attached: PodSandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer = self.respond(plugin, attached, "DEL")
        assert (answer["code"], answer["msg"]) == (104, "delete link tapx: Device or resource busy")
        assert len(plugin.files()) == 1
        assert len(agent.ports) == 3
        monkeypatch.undo()
        plugin.delete(attached).succeeded()
        assert is_clean(plugin, agent)

    def test_a_failed_add_leaves_its_record_to_del(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        agent.reject("POST")
        assert self.respond(plugin, pod, "ADD")["code"] == 101
        assert len(plugin.node.links()) == 2
        assert len(plugin.files()) == 1
        plugin.delete(pod).succeeded()
        assert is_clean(plugin, agent)


def test_del_succeeds_with_settings_that_add_rejects(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    serve_pod(agent)
    plugin.node_file.write_text(json.dumps(plugin.settings))
    for settings in ({"unknown": 5}, {"vrouter-port": "x"}, {"state-dir": "/elsewhere"}, {"mode": "both"}):
        plugin.add(pod, settings=settings).failed(7)
        plugin.delete(pod, settings=settings).succeeded()
    plugin.add(pod).succeeded()
    plugin.delete(pod, settings={"state-dir": "/elsewhere"}).succeeded()
    assert is_clean(plugin, agent)


class TestWithoutTheAgent:
    """The agent is notified later; the sandbox is removed now."""

    def test_links_and_record_are_removed_and_a_later_call_notifies_the_agent(
        self, attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
    ) -> None:
        agent.stop()
        plugin.delete(attached).succeeded()
        assert plugin.node.links() == []
        [kept] = plugin.files()
        assert kept.startswith("state/.pending/")
        agent.start()
        assert len(agent.ports) == 3
        other = PodSandbox(make_netns("pod").path, name="other")
        agent.serve(other.vm_name, make_vmis(1, uid=other.uid))
        plugin.add(other).succeeded()
        assert set(agent.owners().values()) == {other.container}
        assert not (plugin.state_dir / ".pending").exists()

    def test_a_hanging_agent_times_out_after_two_seconds(
        self, attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin
    ) -> None:
        came = agent.stall("DELETE")
        plugin.delete(attached).succeeded()
        assert came.is_set()
        assert plugin.node.links() == []
        assert len(plugin.files()) == 1

    def test_a_rejected_notification_is_logged_and_dropped(
        self, attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin
    ) -> None:
        agent.reject("DELETE", status=404, text="Unknown Request")
        outcome = plugin.delete(attached).succeeded()
        assert "Unknown Request" in outcome.stderr
        assert plugin.files() == []

    def test_a_late_notification_never_unplugs_a_newer_containers_port(
        self, attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
    ) -> None:
        agent.stop()
        plugin.delete(attached).succeeded()
        agent.start()
        newer = PodSandbox(make_netns("pod").path, name=attached.name, uid=attached.uid)
        plugin.add(newer).succeeded()
        assert len(agent.received("DELETE")) == 1
        assert set(agent.owners().values()) == {newer.container}

    def test_attaching_again_discards_the_pending_notification(
        self, attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin
    ) -> None:
        agent.stop()
        plugin.delete(attached).succeeded()
        agent.start()
        plugin.add(attached).succeeded()
        assert agent.received("DELETE") == []
        assert len(agent.ports) == 3
        plugin.delete(attached).succeeded()
        assert is_clean(plugin, agent)
