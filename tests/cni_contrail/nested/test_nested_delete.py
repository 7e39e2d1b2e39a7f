"""DEL, GC and the sweep in nested mode: macvlans go, and each VLAN link with the last one that uses it."""

import json
import shutil
from collections.abc import Callable

import pytest

from cni_contrail.interfaces.names import vlan_link_name
from tests.cni_contrail.conftest import until
from tests.cni_contrail.nested.conftest import Nested, vlan_links
from tests.support.kernel_state import link
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon

VLAN_100 = vlan_link_name("eth0", 100)
VLAN_200 = vlan_link_name("eth0", 200)


@pytest.fixture
def other(plugin: Plugin, nested: Nested, make_netns: Callable[[str], Netns]) -> PodSandbox:
    """Another pod in VLAN 100."""
    other = PodSandbox(make_netns("pod").path, name="web-1")
    nested(100, of=other, subnet=2)
    plugin.add(other).succeeded()
    return other


def left(plugin: Plugin) -> tuple[list[str], list[str], list[str]]:
    """VLAN links, files, and directories of `state-dir`."""
    directories = [path.name for path in plugin.state_dir.rglob("*")] if plugin.state_dir.exists() else []
    return vlan_links(plugin.node), plugin.files(), directories


NOTHING: tuple[list[str], list[str], list[str]] = ([], [], [])


def test_a_vlan_link_goes_with_its_last_macvlan(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, other: PodSandbox, nested: Nested
) -> None:
    nested(100, 200)
    plugin.add(pod).succeeded()
    plugin.delete(pod).succeeded()
    assert (vlan_links(plugin.node), sandbox.links()) == ([VLAN_100], [])
    plugin.delete(other).succeeded()
    assert left(plugin) == NOTHING
    plugin.delete(other).succeeded()


def test_the_sandbox_may_be_gone(plugin: Plugin, pod: PodSandbox, sandbox: Netns, nested: Nested) -> None:
    """Its macvlans go with it, some time later: DEL waits for that, and the VLAN links go too."""
    nested(100, 200)
    plugin.add(pod).succeeded()
    sandbox.delete()
    plugin.delete(pod).succeeded()
    assert left(plugin) == NOTHING


def test_a_sandbox_whose_path_is_gone_is_cleaned(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, nested: Nested
) -> None:
    nested(100)
    plugin.add(pod).succeeded()
    plugin.delete(pod, netns="").succeeded()
    assert sandbox.links() == []
    assert left(plugin) == NOTHING


def test_a_vlan_link_that_something_else_uses_stays_until_it_is_unused(
    plugin: Plugin, pod: PodSandbox, node: Netns, nested: Nested
) -> None:
    nested(100)
    plugin.add(pod).succeeded()
    node.ip("link", "add", "link", VLAN_100, "name", "theirs", "type", "macvlan", "mode", "vepa")
    assert f"VLAN link {VLAN_100}: kept" in plugin.delete(pod).succeeded().stderr
    assert vlan_links(node) == [VLAN_100, "theirs"]
    plugin.gc([]).succeeded()
    assert vlan_links(node) == [VLAN_100, "theirs"]
    node.ip("link", "del", "theirs")
    plugin.gc([]).succeeded()
    assert left(plugin) == NOTHING


def test_gc_removes_macvlans_and_vlan_links_of_living_sandboxes(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, other: PodSandbox, nested: Nested
) -> None:
    nested(100, 200)
    plugin.add(pod).succeeded()
    plugin.gc([other]).succeeded()
    assert sandbox.links() == []
    assert vlan_links(plugin.node) == [VLAN_100]
    plugin.gc([]).succeeded()
    assert left(plugin) == NOTHING


def test_the_daemon_detaches_what_sandboxes_left_that_are_gone(
    plugin: Plugin, caller: ShimAndDaemon, pod: PodSandbox, sandbox: Netns, nested: Nested
) -> None:
    plugin.node_file.write_text(json.dumps(plugin.settings))
    nested(100)
    plugin.add(pod).succeeded()
    sandbox.delete()
    caller.stop()  # sweeps when it starts
    caller.daemon()
    until(lambda: left(plugin)[:2] == NOTHING[:2])


def test_links_are_found_without_a_record(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, other: PodSandbox, nested: Nested
) -> None:
    nested(100, 200)
    plugin.add(pod).succeeded()
    shutil.rmtree(plugin.state_dir)
    plugin.delete(pod).succeeded()
    assert sandbox.links() == []
    assert vlan_links(plugin.node) == [VLAN_100], "a macvlan without a record uses it"
    plugin.delete(other).succeeded()
    assert left(plugin) == NOTHING


@pytest.mark.parametrize("command", ["ADD", "DEL", "GC"])
def test_a_guard_of_a_killed_call_is_no_obstacle(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, node: Netns, nested: Nested, command: str
) -> None:
    """A DEL was killed between creating the guard and deleting the VLAN link; before ADD, its record is lost too."""
    nested(100)
    plugin.add(pod).succeeded()
    sandbox.ip("link", "del", "eth0")
    index = link(node, VLAN_100)["ifindex"]
    node.ip("link", "add", "link", VLAN_100, "name", f"guard{index}", "type", "macvlan", "mode", "passthru")
    if command == "ADD":
        shutil.rmtree(plugin.state_dir)
        plugin.add(pod).succeeded()
        assert vlan_links(node) == [VLAN_100]
    elif command == "GC":
        plugin.gc([]).succeeded()
    plugin.delete(pod).succeeded()
    assert left(plugin) == NOTHING


def test_pods_that_contrails_plugin_attached_keep_their_vlan_link_until_their_sandbox_is_gone(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, node: Netns
) -> None:
    vlan = f"vlaneth0-{pod.uid}"[:15]
    node.ip("link", "add", "link", "eth0", "name", vlan, "type", "vlan", "id", "100")
    node.ip("link", "set", vlan, "alias", "contrail-k8s-cni-vlan-100", "up")
    node.ip("link", "add", "link", vlan, "name", "maceth0", "netns", sandbox.name, "type", "macvlan", "mode", "vepa")
    sandbox.ip("link", "set", "maceth0", "name", "eth0", "up")
    port = {"vm-id": pod.container, "vm-uuid": pod.uid, "vm-ifname": "eth0", "host-ifname": "eth0", "vmi-uuid": "u"}
    file = plugin.config_dir / pod.vm_name / "u"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(port))
    plugin.gc([pod]).succeeded()
    assert (vlan_links(node), plugin.files()) == ([vlan], [str(file.relative_to(plugin.folder))])
    plugin.delete(pod).succeeded()
    assert (vlan_links(node), plugin.files()) == ([vlan], [])
    sandbox.delete()

    def is_collected() -> bool:
        plugin.gc([]).succeeded()
        return left(plugin) == NOTHING

    until(is_collected)
