"""Pods attached by the upstream plugin before this one replaced it: DEL finds them by upstream's port files."""

import json
import os
import uuid
from pathlib import Path
from typing import ClassVar

import pytest

from tests.cni_contrail.conftest import by_entry_point
from tests.support.netns import Netns
from tests.support.plugin import COMMAND, Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent


def attach_as_upstream(plugin: Plugin, pod: PodSandbox, sandbox: Netns, ifname: str) -> Path:
    """Creates what the upstream plugin leaves per interface: a link without alias, and a port file."""
    tap = "tap" + f"{ifname}-{pod.uid}"[:11]
    plugin.node.ip("link", "add", tap, "type", "veth", "peer", "name", ifname, "netns", sandbox.name)
    port = {
        "time": "2026-01-01 00:00:00.0 +0000 UTC",
        "vm-id": pod.container,
        "vm-uuid": pod.uid,
        "vm-name": pod.vm_name,
        "host-ifname": tap,
        "vm-ifname": ifname,
        "vm-namespace": pod.netns,
        "vn-uuid": str(uuid.uuid4()),
        "vmi-uuid": str(uuid.uuid4()),
    }
    file = plugin.config_dir / pod.vm_name / port["vmi-uuid"]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(port, indent="\t"))
    return file


def test_all_interfaces_and_files_of_the_container_are_removed(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    for ifname in ("eth0", "eth1", "interface12"):
        attach_as_upstream(plugin, pod, sandbox, ifname)
    plugin.delete(pod).succeeded()
    assert (plugin.node.links(), sandbox.links(), plugin.files()) == ([], [], [])
    assert not (plugin.config_dir / pod.vm_name).exists()
    [deleted] = vrouter_agent.received("DELETE")
    assert deleted.path == f"/vm/{pod.uid}"


@pytest.mark.parametrize("is_recreated", [False, True], ids=["same pod", "recreated pod"])
def test_files_of_another_container_are_kept(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, *, is_recreated: bool
) -> None:
    """The VM is unplugged unless it is that of the other container too: a recreated pod has a VM of its own."""
    attach_as_upstream(plugin, pod, sandbox, "eth0")
    newer = PodSandbox(pod.netns, name=pod.name, uid=str(uuid.uuid4()) if is_recreated else pod.uid)
    attach_as_upstream(plugin, newer, sandbox, "eth9")
    plugin.delete(pod).succeeded()
    assert len(plugin.node.links()) == 1
    assert len(plugin.files()) == 1
    unplugged = [seen.path for seen in vrouter_agent.received("DELETE")]
    assert unplugged == ([f"/vm/{pod.uid}"] if is_recreated else [])
    plugin.delete(PodSandbox(pod.netns, name=pod.name)).succeeded()
    assert len(plugin.files()) == 1


def test_del_of_a_delegated_network_removes_only_its_interface(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    for ifname in ("eth0", "net1", "oddname"):
        attach_as_upstream(plugin, pod, sandbox, ifname)
    plugin.delete(pod, "net1", name="net-a", settings={"mode": "delegated"}).succeeded()
    assert sorted(sandbox.links()) == ["eth0", "oddname"]
    plugin.delete(pod, "eth0", settings={"mode": "delegated"}).succeeded()
    assert (plugin.node.links(), plugin.files()) == ([], [])
    assert len(vrouter_agent.received("DELETE")) == 1


def test_the_list_that_upstream_keeps_under_multus_is_removed_with_the_last_interface(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    """Upstream would serve the dead interfaces to the next pod of the name."""
    caches = plugin.config_dir.parent / "multus"
    caches.mkdir(parents=True)
    for name in (pod.vm_name, "k8s__demo__other"):
        (caches / name).write_text("[]")
    for ifname in ("eth0", "net1"):
        attach_as_upstream(plugin, pod, sandbox, ifname)
    plugin.delete(pod, "net1", name="net-a", settings={"mode": "delegated"}).succeeded()
    assert (caches / pod.vm_name).exists()
    plugin.delete(pod, "eth0", settings={"mode": "delegated"}).succeeded()
    assert [path.name for path in caches.iterdir()] == ["k8s__demo__other"]


@by_entry_point
def test_folders_as_upstream_makes_them_need_no_capability(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    """The daemon's container has none that goes past the mode of a folder."""
    files = attach_as_upstream(plugin, pod, sandbox, "eth0").parent
    cache = plugin.config_dir.parent / "multus" / pod.vm_name
    cache.parent.mkdir()
    cache.write_text("[]")
    for folder in (files, cache.parent):
        folder.chmod(0o644)
    command = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", *COMMAND)
    environment = os.environ | plugin.environment("DEL", pod)
    ended = plugin.node.run(*command, env=environment, input=json.dumps(plugin.config()))
    assert ended.returncode == 0, ended.stdout
    assert (plugin.node.links(), plugin.files()) == ([], [])
    assert not files.exists()
    assert not cache.exists()


def test_the_list_of_upstream_is_found_beside_a_directory_with_a_slash_at_its_end(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    cache = plugin.config_dir.parent / "multus" / pod.vm_name
    cache.parent.mkdir(parents=True)
    cache.write_text("[]")
    attach_as_upstream(plugin, pod, sandbox, "eth0")
    plugin.delete(pod, settings={"config-dir": f"{plugin.config_dir}/"}).succeeded()
    assert plugin.files() == []


def test_a_list_of_upstream_that_cannot_be_removed_is_no_error(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    cache = plugin.config_dir.parent / "multus" / pod.vm_name
    cache.mkdir(parents=True)
    attach_as_upstream(plugin, pod, sandbox, "eth0")
    assert str(cache) in plugin.delete(pod).succeeded().stderr
    assert plugin.files() == []


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"'])
def test_an_incomplete_port_file_is_kept(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, content: str
) -> None:
    attach_as_upstream(plugin, pod, sandbox, "eth0").write_text(content)
    (plugin.config_dir / pod.vm_name / "folder").mkdir()
    plugin.delete(pod).succeeded()
    assert len(plugin.files()) == 1


def test_a_link_with_an_alias_is_kept(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    attach_as_upstream(plugin, pod, sandbox, "eth0")
    [tap] = plugin.node.links()
    plugin.node.ip("link", "set", tap, "alias", "somebody's")
    plugin.delete(pod).succeeded()
    assert plugin.node.links() == [tap]


@pytest.mark.parametrize(
    "values",
    [
        {"author": "/usr/bin/contrail-vrouter-agent"},
        {"vm-ifname": "1a2b3c4d-5e"},
        {"host-ifname": "uplink"},
        {"host-ifname": "", "vm-ifname": "", "vm-uuid": ""},
    ],
    ids=["written by an agent", "another name in the sandbox", "another host end", "empty values"],
)
def test_a_port_file_that_no_plugin_wrote_removes_nothing(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, values: dict[str, str]
) -> None:
    """Agents write files for whoever can post to them, and the file chooses the link."""
    file = attach_as_upstream(plugin, pod, sandbox, "eth0")
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
    for number, name in enumerate(("uplink", "tap1a2b3c4d-5e", "tap-")):
        plugin.node.ip("link", "add", name, "type", "veth", "peer", "name", f"peer-{number}")
    before = plugin.node.links()
    plugin.delete(pod).succeeded()
    assert plugin.node.links() == before
    assert file.exists()
    assert vrouter_agent.received("DELETE") == []


@pytest.mark.parametrize(
    "values",
    [
        {"vm-ifname": "a%b", "host-ifname": "tapa%b-5d1c0b7"},
        {"vm-ifname": "\ud800", "host-ifname": "tap\ud800"},
        {"vm-ifname": ["eth0"]},
        {"vm-uuid": {}, "host-ifname": None},
        {"vm-id": []},
        {"vmi-uuid": []},
    ],
    ids=["pattern", "not encodable", "list", "object", "container", "interface"],
)
def test_a_port_file_with_unusual_values_is_no_error(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, values: dict[str, object]
) -> None:
    good = attach_as_upstream(plugin, pod, sandbox, "eth1")
    file = attach_as_upstream(plugin, pod, sandbox, "eth0")
    port = json.loads(file.read_text()) | values
    if values.get("vm-ifname") == "a%b":
        port["host-ifname"] = "tap" + f"a%b-{pod.uid}"[:11]
    file.write_text(json.dumps(port))
    plugin.delete(pod).succeeded()
    assert not good.exists()
    assert sandbox.links() == (["eth0"] if file.exists() else [])


def test_no_agent_is_needed(plugin: Plugin, pod: PodSandbox, sandbox: Netns) -> None:
    attach_as_upstream(plugin, pod, sandbox, "eth0")
    plugin.delete(pod).succeeded()
    assert plugin.node.links() == []
    [kept] = plugin.files()
    assert kept.startswith("state/.pending/")


class TestNestedMode:
    """The upstream plugin records the parent interface as the host end of each interface, and posts nothing."""

    NESTED: ClassVar[dict[str, object]] = {"vif-type": "macvlan", "parent-interface": "uplink"}

    @pytest.fixture
    def uplink(self, plugin: Plugin) -> list[str]:
        """The node's links, the parent interface among them."""
        plugin.node.ip("link", "add", "uplink", "type", "veth", "peer", "name", "port")
        return plugin.node.links()

    def attach(self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, ifname: str, parent: str = "uplink") -> Path:
        file = attach_as_upstream(plugin, pod, sandbox, ifname)
        port = json.loads(file.read_text())
        plugin.node.ip("link", "delete", port["host-ifname"])
        file.write_text(json.dumps(port | {"host-ifname": parent}))
        return file

    def test_files_are_removed_and_the_parent_interface_stays(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, uplink: list[str]
    ) -> None:
        for ifname in ("eth0", "eth1"):
            self.attach(plugin, pod, sandbox, ifname)
        plugin.delete(pod, settings=self.NESTED).succeeded()
        assert (plugin.node.links(), plugin.files()) == (uplink, [])
        assert not (plugin.config_dir / pod.vm_name).exists()
        assert vrouter_agent.received("DELETE") == []

    def test_files_of_another_parent_are_kept(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, uplink: list[str]
    ) -> None:
        file = self.attach(plugin, pod, sandbox, "eth0", parent="port")
        plugin.delete(pod, settings=self.NESTED).succeeded()
        assert file.exists()
        assert plugin.node.links() == uplink

    def test_a_parent_interface_is_no_host_end_without_nested_mode(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, uplink: list[str]
    ) -> None:
        file = self.attach(plugin, pod, sandbox, "eth0")
        plugin.delete(pod).succeeded()
        assert file.exists()
        assert plugin.node.links() == uplink
