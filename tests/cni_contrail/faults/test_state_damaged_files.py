"""Corrupt, empty or missing state files: no call crashes, and DEL still finds the links."""

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from tests.cni_contrail.conftest import Attach
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod, make_vmis

DAMAGED = [b"", b"{", b"[]", b"{}", b"null", b"\xff", b"\0" * 4096, b"[" * 100000, b'{"version": 99}']


@pytest.fixture
def attached(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod) -> PodSandbox:
    serve_pod(agent, 3)
    plugin.add(pod).succeeded()
    return pod


@pytest.fixture(params=DAMAGED, ids=range(len(DAMAGED)))
def damaged(request: pytest.FixtureRequest, plugin: Plugin, attached: PodSandbox) -> PodSandbox:
    plugin.record_path(attached).write_bytes(request.param)
    return attached


class TestDel:
    def test_detaches_by_alias_and_keeps_the_damaged_record_for_inspection(
        self, damaged: PodSandbox, agent: ScriptedAgent, plugin: Plugin, sandbox: Netns
    ) -> None:
        content = plugin.record_path(damaged).read_bytes()
        outcome = plugin.delete(damaged).succeeded()
        assert "is damaged" in outcome.stderr
        assert (plugin.node.links(), sandbox.links(), agent.ports) == ([], [], {})
        [aside] = plugin.files()
        assert aside == f"state/.damaged/{damaged.container}.eth0.json"
        assert (plugin.folder / aside).read_bytes() == content
        plugin.add(damaged).succeeded()

    def test_detaches_by_alias_when_the_state_directory_is_gone(
        self, attached: PodSandbox, agent: ScriptedAgent, plugin: Plugin, sandbox: Netns
    ) -> None:
        shutil.rmtree(plugin.state_dir)
        plugin.delete(attached).succeeded()
        assert (plugin.node.links(), sandbox.links(), plugin.files(), agent.ports) == ([], [], [], {})

    def test_notifies_the_agent_later_if_it_is_unreachable(
        self, damaged: PodSandbox, agent: ScriptedAgent, plugin: Plugin, attach: Attach
    ) -> None:
        agent.stop()
        plugin.delete(damaged).succeeded()
        agent.start()
        other = attach(agent, "other")
        assert set(agent.owners().values()) == {other.container}

    @pytest.mark.parametrize("name", ["web-0", "web-00", "other"])
    def test_touches_no_container_with_a_similar_id(
        self, agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns], name: str
    ) -> None:
        """Aliases contain only the first 12 characters of a container ID."""
        container = "default-container-1"
        pod = PodSandbox(make_netns("pod").path, container=container)
        alike = PodSandbox(make_netns("pod").path, name=name, namespace="else", container=f"{container}1")
        for number, each in enumerate((pod, alike)):
            agent.serve(each.vm_name, make_vmis(2, uid=each.uid, subnet=number))
            plugin.add(each).succeeded()
        plugin.record_path(pod).write_bytes(b"")
        plugin.delete(pod).succeeded()
        assert len(plugin.node.links()) == 2
        assert set(agent.owners().values()) == {alike.container}

    def test_touches_no_other_attachment_of_the_container(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 3)
        plugin.add(pod, settings={"mode": "delegated"}).succeeded()
        for number in (1, 2):
            plugin.add(pod, f"net{number}", name=f"net-{number}").succeeded()
        plugin.record_path(pod, "net1").write_bytes(b"")
        plugin.delete(pod, "net1", name="net-1").succeeded()
        assert sandbox.links() == ["eth0", "net2"]
        plugin.record_path(pod).write_bytes(b"")
        plugin.delete(pod).succeeded()  # by a configuration that is thick now: it would take all that is left
        assert sandbox.links() == ["net2"]
        assert len(agent.ports) == 1

    def test_uses_the_port_files_with_the_vrouter_agent(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(vrouter_agent, 2)
        plugin.add(pod).succeeded()
        plugin.record_path(pod).write_bytes(b"")
        plugin.delete(pod).succeeded()
        assert (plugin.node.links(), vrouter_agent.ports) == ([], {})
        assert [path for path in plugin.files() if ".damaged" not in path] == []


class TestOtherCalls:
    def test_add_creates_nothing_until_del_has_cleaned_up(
        self, damaged: PodSandbox, agent: ScriptedAgent, plugin: Plugin
    ) -> None:
        before = plugin.node.ip("link")
        assert str(plugin.record_path(damaged)) in plugin.add(damaged).failed(106)
        assert plugin.node.ip("link") == before
        assert len(agent.ports) == 3

    def test_another_attachment_of_the_container_is_rejected(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        """It is unknown which interface the damaged record claims."""
        serve_pod(agent, 3)
        plugin.add(pod, "net1", name="net-1").succeeded()
        plugin.record_path(pod, "net1").write_bytes(b"")
        plugin.add(pod, "net2", name="net-2").failed(106)
        plugin.delete(pod, "net2", name="net-2").succeeded()
        plugin.delete(pod, "net1", name="net-1").succeeded()
        plugin.add(pod, "net2", name="net-2").succeeded()

    def test_check_reports_it_and_keeps_it(self, damaged: PodSandbox, plugin: Plugin) -> None:
        content = plugin.record_path(damaged).read_bytes()
        assert "is damaged" in plugin.check(damaged, previous={}).failed(106)
        assert plugin.record_path(damaged).read_bytes() == content

    def test_gc_reports_it_and_keeps_it(self, damaged: PodSandbox, plugin: Plugin) -> None:
        assert "is damaged" in plugin.gc([]).failed(106)
        assert len(plugin.node.links()) == 3


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_damaged_port_files_are_kept(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, content: bytes) -> None:
    """The original plugin writes them in place; if killed, it leaves them empty."""
    file = plugin.config_dir / pod.vm_name / "159b591c-e57e-11f1-b951-02fc00000001"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    plugin.delete(pod).succeeded()
    assert file.read_bytes() == content


@pytest.mark.parametrize("values", [{"container_id": 5}, {"port_directory": 5}, {"machine": None}])
def test_damaged_notifications_are_dropped(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, values: dict[str, Any]
) -> None:
    serve_pod(agent)
    queue = plugin.state_dir / ".pending"
    queue.mkdir(parents=True, mode=0o700)
    good = {"container_id": "c", "machine": pod.uid, "interface": "", "port_directory": ""}
    for number, content in enumerate([*DAMAGED, json.dumps({**good, **values}).encode()]):
        (queue / f"{number}.json").write_bytes(content)
    plugin.add(pod).succeeded()
    assert not queue.exists()
    assert agent.received("DELETE") == []
