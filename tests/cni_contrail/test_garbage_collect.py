"""GC detaches exactly the attachments of its network that are not valid, and keeps those whose ADD still runs."""

import fcntl
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.cni_contrail.conftest import Attach, until
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ReceivedRequest, ScriptedAgent, ServePod, make_vmis


def links_of(plugin: Plugin, *pods: PodSandbox) -> list[str]:
    records = [plugin.record(pod) for pod in pods]
    return sorted(each["plan"]["host_name"] for record in records for each in record["interfaces"])


class TestValidAttachments:
    def test_all_other_attachments_are_detached(self, agent: ScriptedAgent, plugin: Plugin, attach: Attach) -> None:
        stays, _goes, _goes_too = (attach(agent, name, interfaces=3) for name in ("a", "b", "c"))
        assert plugin.gc([stays]).succeeded().stdout == ""
        assert sorted(plugin.node.links()) == links_of(plugin, stays)
        assert plugin.files() == [f"state/{stays.container}/eth0.json"]
        assert set(agent.owners().values()) == {stays.container}

    @pytest.mark.parametrize("nothing", [[], None])
    def test_an_empty_list_and_null_mean_none(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, nothing: Any
    ) -> None:
        attach(agent, "a", interfaces=2)
        plugin.gc([], **{"cni.dev/valid-attachments": nothing, "cni.dev/attachments": nothing}).succeeded()
        assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})

    def test_without_a_list_nothing_is_detached_and_gc_fails(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach
    ) -> None:
        """As called by `cnitool gc`."""
        attach(agent, "a")
        environment = {"CNI_COMMAND": "GC", "CNI_PATH": "/opt/cni/bin"}
        config = json.dumps(plugin.config(version="1.1.0"))
        assert "cni.dev/valid-attachments" in plugin.call(environment, config).failed(7)
        assert len(plugin.node.links()) == 1

    def test_the_deprecated_key_is_accepted(self, agent: ScriptedAgent, plugin: Plugin, attach: Attach) -> None:
        stays = attach(agent, "a")
        attach(agent, "b")
        environment = {"CNI_COMMAND": "GC", "CNI_PATH": "/opt/cni/bin"}
        valid: dict[str, Any] = {"cni.dev/attachments": [{"containerID": stays.container, "ifname": "eth0"}]}
        plugin.call(environment, json.dumps(plugin.config(version="1.1.0", **valid))).succeeded()
        assert plugin.node.links() == links_of(plugin, stays)

    @pytest.mark.parametrize(
        "wrong", ["x", {}, 5, [5], [{}], [{"containerID": "c"}], [{"containerID": "c", "ifname": 5}], [None]]
    )
    def test_a_malformed_list_is_rejected_and_nothing_is_detached(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, wrong: Any
    ) -> None:
        attach(agent, "a")
        message = plugin.gc([], **{"cni.dev/valid-attachments": wrong}).failed(7)
        assert message.startswith("cni.dev/valid-attachments must ")
        assert len(plugin.node.links()) == 1

    def test_an_attachment_is_matched_by_container_and_interface(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach
    ) -> None:
        pod = attach(agent, "a", settings={"mode": "delegated"})
        plugin.gc([(pod, "eth1")]).succeeded()
        assert plugin.node.links() == []

    def test_container_ids_of_any_length_are_distinguished(
        self, agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
    ) -> None:
        pods = [PodSandbox(make_netns("pod").path, name=end, container="c" * 150 + end) for end in "ab"]
        for pod in pods:
            agent.serve(pod.vm_name, make_vmis(1, uid=pod.uid))
            plugin.add(pod).succeeded()
        plugin.gc(pods[:1]).succeeded()
        assert len(plugin.node.links()) == 1
        plugin.delete(pods[0]).succeeded()
        assert plugin.files() == []


class TestKept:
    def test_attachments_of_other_networks(self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox) -> None:
        """Several attachments of one container, each of its own network: GC applies to one network."""
        agent.serve(pod.vm_name, make_vmis(3, uid=pod.uid))
        delegated = {"mode": "delegated"}
        plugin.add(pod, settings=delegated).succeeded()
        for number in (1, 2):
            plugin.add(pod, f"net{number}", name=f"net-{number}").succeeded()
        plugin.gc([], name="net-1").succeeded()
        assert [os.path.basename(path) for path in plugin.files()] == ["eth0.json", "net2.json"]
        assert len(agent.ports) == 2
        plugin.add(pod, "net1", name="net-1").succeeded()  # its claim was freed

    def test_an_add_that_waits_for_the_agent(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        settings = {"poll-timeout": 3, "poll-retries": 20}
        adding = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config(settings=settings)))
        path = plugin.record_path(pod)
        until(path.exists)
        os.utime(path, (0, 0))
        plugin.gc([]).succeeded()
        assert path.exists()
        serve_pod(agent, 2)
        adding.communicate(timeout=20)
        assert adding.returncode == 0
        assert sandbox.links() == ["eth0", "eth1"]

    def test_an_add_that_plugs_its_ports(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        collected: list[str] = []

        def collect(seen: ReceivedRequest) -> None:
            if seen.method == "POST":
                collected.append(plugin.gc([]).succeeded().stderr)

        agent.before(collect)
        plugin.add(pod, settings={"poll-timeout": 3}).succeeded()
        assert ": kept: " in collected[0]
        assert sandbox.links() == ["eth0", "eth1"]
        assert len(agent.ports) == 2

    def test_a_killed_add_is_not_kept(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        came = agent.stall("POST")
        adding = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config()))
        assert came.wait(10)
        until(lambda: len(plugin.node.links()) == 2)
        plugin.kill(adding)
        adding.communicate(timeout=10)
        plugin.gc([]).succeeded()
        assert (plugin.node.links(), plugin.files()) == ([], [])

    def test_an_attachment_locked_by_another_call(self, agent: ScriptedAgent, plugin: Plugin, attach: Attach) -> None:
        pod = attach(agent, "a")
        held = os.open(plugin.state_dir / pod.container, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            plugin.gc([]).succeeded()
        finally:
            os.close(held)
        assert len(plugin.node.links()) == 1

    def test_attachments_made_from_another_network_namespace(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, make_netns: Callable[[str], Netns]
    ) -> None:
        """Two nodes in network namespaces of one host that share a state directory."""
        attach(agent, "a")
        other = Plugin(make_netns("node"), plugin.folder, agent.socket_path)
        other.gc([]).succeeded()
        assert len(plugin.node.links()) == 1
        assert len(plugin.files()) == 1

    def test_a_record_of_an_unknown_version(self, agent: ScriptedAgent, plugin: Plugin, attach: Attach) -> None:
        """It may belong to another network. The error names it, and DEL removes the attachment by the aliases."""
        pod = attach(agent, "a")
        plugin.record_path(pod).write_text(json.dumps({**plugin.record(pod), "version": 1}))
        assert str(plugin.record_path(pod)) in plugin.gc([]).failed(106)
        assert len(plugin.node.links()) == 1
        plugin.delete(pod).succeeded()
        assert (plugin.node.links(), agent.ports) == ([], {})

    def test_interfaces_of_the_upstream_plugin(self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox) -> None:
        """Its files do not name the network, and its taps have no alias: DEL removes them."""
        tap = "tapeth0-" + pod.uid[:6]
        plugin.node.ip("link", "add", tap, "type", "veth", "peer", "name", "other")
        file = plugin.config_dir / pod.vm_name / "x"
        file.parent.mkdir(parents=True)
        port = {"vm-id": pod.container, "vm-uuid": pod.uid, "vm-ifname": "eth0", "host-ifname": tap}
        file.write_text(json.dumps(port))
        plugin.gc([]).succeeded()
        assert tap in plugin.node.links()
        assert file.exists()
        plugin.delete(pod).succeeded()
        assert plugin.node.links() == []


class TestErrors:
    def test_gc_continues_after_errors_and_reports_all(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach
    ) -> None:
        damaged = [attach(agent, name) for name in ("a", "b")]
        attach(agent, "c", interfaces=2)
        for pod in damaged:
            plugin.record_path(pod).write_bytes(b"{")
        message = plugin.gc([]).failed(106)
        assert all(str(plugin.record_path(pod)) in message for pod in damaged)
        assert len(plugin.node.links()) == 2
        assert set(agent.owners().values()) == {pod.container for pod in damaged}

    def test_a_damaged_record_of_a_valid_attachment_is_no_error(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach
    ) -> None:
        pod = attach(agent, "a")
        plugin.record_path(pod).write_bytes(b"{")
        plugin.gc([pod]).succeeded()
        assert plugin.record_path(pod).read_bytes() == b"{"

    def test_an_unreachable_agent_is_no_error_and_is_notified_later(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach
    ) -> None:
        stays = attach(agent, "a")
        for name in ("b", "c"):
            attach(agent, name)
        agent.stop()
        plugin.gc([stays]).succeeded()
        assert len(plugin.node.links()) == 1
        agent.start()
        plugin.gc([stays]).succeeded()
        assert set(agent.owners().values()) == {stays.container}
        assert len(plugin.files()) == 1

    def test_nothing_to_detach_is_no_error(self, plugin: Plugin) -> None:
        plugin.gc([]).succeeded()
        assert not plugin.state_dir.exists()


class TestWithAVrouterAgent:
    def test_port_files_are_removed_and_the_vm_is_unplugged(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, attach: Attach
    ) -> None:
        stays = attach(vrouter_agent, "a", interfaces=2)
        goes = attach(vrouter_agent, "b", interfaces=2)
        plugin.gc([stays]).succeeded()
        assert [seen.path for seen in vrouter_agent.received("DELETE")] == [f"/vm/{goes.uid}"]
        assert set(vrouter_agent.owners().values()) == {stays.container}
        assert not (plugin.config_dir / goes.vm_name).exists()
        assert len(plugin.node.links()) == 2


def test_del_after_gc_succeeds(agent: ScriptedAgent, plugin: Plugin, attach: Attach) -> None:
    pod = attach(agent, "a")
    plugin.gc([]).succeeded()
    plugin.delete(pod).succeeded()
    assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})


def test_the_agent_is_notified_of_many_attachments_at_once(
    agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> None:
    netns = make_netns("pod")
    pods = [PodSandbox(netns.path, name=f"p{number}") for number in range(20)]
    for number, pod in enumerate(pods):
        agent.serve(pod.vm_name, make_vmis(1, uid=pod.uid, subnet=number))
        plugin.add(pod, f"if{number}").succeeded()
    plugin.gc([]).succeeded()
    assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})
