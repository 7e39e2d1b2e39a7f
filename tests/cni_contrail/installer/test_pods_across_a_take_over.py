"""Pods run on while one plugin replaces the other, and the one that comes later deletes those of the earlier one.

The vrouter agent of the node stays: both plugins use it, and the same port files.
"""

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from tests.cni_contrail.conftest import DAEMON, until
from tests.cni_contrail.installer.upstream_node import upstream_document
from tests.support.netns import Netns
from tests.support.plugin import LONG_POLL, Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, make_vmis
from tests.support.upstream_plugin import Sandbox, UpstreamPlugin

pytestmark = pytest.mark.parametrize("plugin", [DAEMON], indirect=True)


@pytest.fixture
def pod(sandbox: Netns, vrouter_agent: ScriptedAgent) -> PodSandbox:
    """A pod with three interfaces, as both plugins identify it."""
    pod = PodSandbox(sandbox.path, name="p1", namespace="default")
    vrouter_agent.serve(pod.vm_name, make_vmis(3, uid=pod.uid, ipv6=False))
    return pod


@pytest.fixture
def upstream(plugin: Plugin, vrouter_agent: ScriptedAgent) -> UpstreamPlugin:
    plugin.config_dir.mkdir(parents=True)  # as Contrail's installer does
    plugin.settings |= LONG_POLL
    # The daemon's configuration sets what Contrail's file sets too, another log file among it.
    plugin.node_file.write_text(json.dumps(plugin.settings | {"log-file": ""}))
    return UpstreamPlugin(vrouter_agent.listen_on_tcp(), plugin.node, plugin.config_dir)


def addresses(sandbox: Netns) -> str:
    return sandbox.ip("-brief", "address") + sandbox.ip("route")


def cached_configuration(plugin: Plugin) -> dict[str, Any]:
    """Contrail's configuration, with which CRI-O and Multus delete the pods that it attached."""
    return upstream_document(**{"config-dir": str(plugin.config_dir)})


@pytest.mark.parametrize("configuration", ["that of the installer", "that of Contrail"])
def test_del_of_a_pod_that_contrails_plugin_attached(
    upstream: UpstreamPlugin,
    vrouter_agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    sandbox: Netns,
    configuration: str,
) -> None:
    upstream.add(Sandbox(sandbox, pod.container))
    assert len(plugin.node.links()) == len(plugin.files()) == len(vrouter_agent.ports) == 3
    document = {"cniVersion": "1.0.0", "name": "contrail-k8s-cni", "type": "contrail-k8s-cni"}
    if configuration == "that of Contrail":
        document = cached_configuration(plugin)
    for _ in range(2):
        plugin.call(plugin.environment("DEL", pod), json.dumps(document)).succeeded()
        assert (plugin.node.links(), sandbox.links(), plugin.files()) == ([], [], [])
        assert vrouter_agent.ports == {}
    assert list(plugin.config_dir.iterdir()) == []


def test_pods_of_contrails_plugin_run_on_beside_ours(
    upstream: UpstreamPlugin,
    vrouter_agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    sandbox: Netns,
    make_netns: Callable[[str], Netns],
) -> None:
    upstream.add(Sandbox(sandbox, pod.container))
    before = (addresses(sandbox), plugin.files())
    other = PodSandbox(make_netns("pod").path, name="p2", namespace="default")
    vrouter_agent.serve(other.vm_name, make_vmis(2, uid=other.uid, subnet=9, ipv6=False))
    plugin.add(other).succeeded()
    plugin.gc([pod, other]).succeeded()
    plugin.delete(other).succeeded()
    assert (addresses(sandbox), plugin.files()) == before
    assert set(vrouter_agent.owners().values()) == {pod.container}


def test_a_restarted_sandbox_of_such_a_pod_is_ours(
    upstream: UpstreamPlugin,
    vrouter_agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    sandbox: Netns,
    make_netns: Callable[[str], Netns],
) -> None:
    """Contrail's agent keeps the device of the older sandbox until the port is unplugged."""
    upstream.add(Sandbox(sandbox, pod.container))
    new_sandbox = make_netns("pod")
    newer = PodSandbox(new_sandbox.path, name=pod.name, namespace=pod.namespace, uid=pod.uid)
    plugin.add(newer).succeeded()
    before = addresses(new_sandbox)
    plugin.delete(pod).succeeded()
    assert addresses(new_sandbox) == before
    assert set(vrouter_agent.owners().values()) == {newer.container}
    plugin.delete(newer).succeeded()
    assert vrouter_agent.ports == {}


@pytest.mark.parametrize("missing", ["the pod's folder", "all folders"])
def test_del_succeeds_without_port_files(
    upstream: UpstreamPlugin,
    vrouter_agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    sandbox: Netns,
    missing: str,
) -> None:
    """The interfaces then go with the sandbox, as with Contrail's plugin."""
    upstream.add(Sandbox(sandbox, pod.container))
    shutil.rmtree(plugin.config_dir / pod.vm_name if missing == "the pod's folder" else plugin.config_dir.parent)
    plugin.delete(pod).succeeded()
    sandbox.delete()
    until(lambda: plugin.node.links() == [])


def test_del_by_contrails_plugin_of_a_pod_that_ours_attached(
    upstream: UpstreamPlugin, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    """It knows the pod by its port files, and not the names of the host ends, which go with the sandbox."""
    plugin.add(pod).succeeded()
    upstream.delete(Sandbox(sandbox, pod.container))
    assert vrouter_agent.ports == {}
    assert list(plugin.config_dir.iterdir()) == []
    sandbox.delete()
    until(lambda: plugin.node.links() == [])
    # Our record is left. It ends when this plugin is installed again, or with a reboot.
    plugin.delete(pod, netns="").succeeded()
    assert plugin.files() == []
