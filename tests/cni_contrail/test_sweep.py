"""Sweep: later calls for other containers detach attachments whose runtime forgot the sandbox, or crashed."""

import fcntl
import json
import os
import subprocess
from collections.abc import Callable

import pytest

from cni_contrail.commands.node import NodeServices
from cni_contrail.commands.sweep import sweep
from cni_contrail.daemon.configuration import DaemonConfiguration
from cni_contrail.daemon.execution_context import DaemonContext
from cni_contrail.log import Log
from cni_contrail.settings import Settings
from tests.cni_contrail.conftest import Attach, by_entry_point, until
from tests.support.netns import Netns
from tests.support.plugin import Outcome, Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod, make_vmis

NextCall = Callable[[], Outcome]


@pytest.fixture(params=["ADD", "DEL"])
def next_call(
    request: pytest.FixtureRequest, agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> NextCall:
    """A call for an unrelated pod."""
    pod = PodSandbox(make_netns("pod").path, name="another")
    agent.serve(pod.vm_name, make_vmis(1, uid=pod.uid, subnet=99))
    if request.param == "DEL":
        plugin.add(pod).succeeded()
        return lambda: plugin.delete(pod).succeeded()
    return lambda: plugin.add(pod).succeeded()


def remove_sandboxes(plugin: Plugin, *pods: PodSandbox) -> None:
    """Removes the sandboxes, whereupon the kernel removes their links."""
    hosts = {each["plan"]["host_name"] for pod in pods for each in plugin.record(pod)["interfaces"]}
    for pod in pods:
        subprocess.run(["ip", "netns", "del", os.path.basename(pod.netns)], check=True)
    until(lambda: not hosts & set(plugin.node.links()))


def test_the_next_call_detaches_an_orphan_and_notifies_the_agent(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
) -> None:
    pod = attach(agent, "gone", interfaces=3)
    remove_sandboxes(plugin, pod)
    next_call()
    assert not plugin.record_path(pod).parent.exists()
    assert pod.container not in agent.owners().values()


def test_a_call_sweeps_a_bounded_number_of_containers(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, pod: PodSandbox
) -> None:
    gone = [attach(agent, f"gone-{number}") for number in range(6)]
    remove_sandboxes(plugin, *gone)
    plugin.delete(pod).succeeded()
    assert len(list(plugin.state_dir.glob("*/eth0.json"))) == 2
    plugin.delete(pod).succeeded()
    assert list(plugin.state_dir.glob("*/eth0.json")) == []


def test_orphans_are_found_among_living_containers(agent: ScriptedAgent, plugin: Plugin, attach: Attach) -> None:
    pods = [attach(agent, f"pod-{number}") for number in range(8)]
    gone = max(pods, key=lambda pod: pod.container)
    remove_sandboxes(plugin, gone)
    for pod in pods:
        if pod is not gone:
            plugin.delete(pod).succeeded()
    assert plugin.files() == []
    assert agent.ports == {}


def test_an_add_killed_before_its_first_link_is_swept(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, next_call: NextCall
) -> None:
    came = agent.stall("GET", f"/vm-cfg/{pod.vm_name}")
    adding = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config()))
    assert came.wait(10)
    plugin.kill(adding)
    adding.communicate(timeout=10)
    sandbox.delete()
    next_call()
    assert not plugin.record_path(pod).exists()


def test_a_sandbox_is_recognized_by_its_netns_id_if_its_path_is_invisible(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
) -> None:
    """The path in the record is one of another mount namespace."""
    gone, damaged = attach(agent, "gone"), attach(agent, "damaged")
    for pod in (gone, damaged):
        record = plugin.record(pod)
        assert record["sandbox_id"] >= 0
        plugin.record_path(pod).write_text(json.dumps({**record, "netns": "/run/netns/of-another-mount-namespace"}))
    plugin.node.ip("link", "delete", plugin.record(damaged)["interfaces"][0]["plan"]["host_name"])
    remove_sandboxes(plugin, gone)
    next_call()
    assert not plugin.record_path(gone).exists()
    assert plugin.record_path(damaged).exists()


def test_a_reused_netns_id_is_not_mistaken_for_the_sandbox(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
) -> None:
    pod = attach(agent, "gone")
    remove_sandboxes(plugin, pod)
    other = attach(agent, "other")
    path = plugin.record_path(pod)
    if path.exists():  # the ADD of the other one may have freed it already
        path.write_text(json.dumps({**plugin.record(pod), "sandbox_id": plugin.record(other)["sandbox_id"]}))
    next_call()
    assert not path.exists()
    assert plugin.record_path(other).exists()


class TestKept:
    def test_a_sandbox_whose_links_were_deleted(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
    ) -> None:
        """It still exists: CHECK must report what is missing, and DEL restores default routes."""
        pod = attach(agent, "damaged", interfaces=2)
        for each in plugin.record(pod)["interfaces"]:
            plugin.node.ip("link", "delete", each["plan"]["host_name"])
        next_call()
        assert plugin.record_path(pod).exists()

    def test_a_sandbox_whose_path_is_gone(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
    ) -> None:
        """Its path is gone, but something holds the namespace."""
        pod = attach(agent, "held")
        held = os.open(pod.netns, os.O_RDONLY)
        try:
            subprocess.run(["ip", "netns", "del", os.path.basename(pod.netns)], check=True)
            next_call()
            assert plugin.record_path(pod).exists()
        finally:
            os.close(held)

    def test_a_running_add_whose_sandbox_is_removed(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, next_call: NextCall
    ) -> None:
        settings = {"poll-timeout": 3, "poll-retries": 20}
        adding = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config(settings=settings)))
        until(plugin.record_path(pod).exists)
        sandbox.delete()
        next_call()
        assert plugin.record_path(pod).exists()
        agent.serve(pod.vm_name, make_vmis(1, uid=pod.uid))
        adding.communicate(timeout=20)
        assert adding.returncode == 0

    def test_attachments_made_from_another_network_namespace(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        attach: Attach,
        make_netns: Callable[[str], Netns],
        next_call: NextCall,
    ) -> None:
        """Two nodes in namespaces that share a state directory: links of the other one are invisible from here."""
        other = PodSandbox(make_netns("pod").path, name="other")
        agent.serve(other.vm_name, make_vmis(1, uid=other.uid))
        other_node = Plugin(make_netns("node"), plugin.folder, agent.socket_path)
        other_node.add(other).succeeded()
        remove_sandboxes(other_node, other)
        next_call()
        assert plugin.record_path(other).exists()

    def test_a_record_of_an_unknown_version(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
    ) -> None:
        pod = attach(agent, "old")
        remove_sandboxes(plugin, pod)
        plugin.record_path(pod).write_text(json.dumps({**plugin.record(pod), "version": 1}))
        next_call()
        assert plugin.record_path(pod).exists()

    def test_a_container_locked_by_another_call(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
    ) -> None:
        pod = attach(agent, "busy")
        remove_sandboxes(plugin, pod)
        held = os.open(plugin.state_dir / pod.container, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            next_call()
        finally:
            os.close(held)
        assert plugin.record_path(pod).exists()

    def test_a_damaged_record(self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall) -> None:
        pod = attach(agent, "damaged")
        plugin.record_path(pod).write_bytes(b"")
        next_call()
        assert plugin.record_path(pod).exists()


@by_entry_point
def test_calls_leave_a_directory_that_the_daemon_maintains_to_its_maintenance(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach
) -> None:
    pod = attach(agent, "gone")
    remove_sandboxes(plugin, pod)
    context = DaemonContext(DaemonConfiguration(), json_lines=False)
    node = NodeServices(Settings(state_dir=str(plugin.state_dir)), Log(), context)
    with plugin.node.inside():
        context.maintained_state_dir = node.settings.state_dir
        sweep(node, "another")
        assert plugin.record_path(pod).exists()
        context.maintained_state_dir = "/another"
        sweep(node, "another")
        assert not plugin.record_path(pod).exists()


def test_records_from_before_a_reboot_are_swept(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, pod: PodSandbox, serve_pod: ServePod
) -> None:
    """With a state directory that is not on tmpfs; the agent is notified too, even if it starts later."""
    before = [attach(agent, f"pod-{number}", interfaces=2) for number in range(3)]
    agent.stop()
    remove_sandboxes(plugin, *before)
    plugin.delete(before[0], netns="").succeeded()
    agent.start()
    serve_pod(agent)
    plugin.add(pod).succeeded()
    assert [path for path in plugin.files() if pod.container not in path] == []
    assert set(agent.owners().values()) == {pod.container}
