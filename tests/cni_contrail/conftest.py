"""A node with the plugin and a scripted agent, and pods' sandboxes beside it."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.agent.connections import idle_connections
from cni_contrail.deadline import Deadline
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.plugin import Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent, ScriptedNodeAgent, ServePod, Vmi, VrouterAgent, make_vmis

SMALL_DISK = 64 * 1024
ENTRY_POINT = "entry point"
DAEMON = "shim and daemon"

by_entry_point = pytest.mark.parametrize("plugin", [ENTRY_POINT], indirect=True)
"""For tests of the entry point's process, and tests that do not call the plugin."""

Attach = Callable[..., PodSandbox]
"""Attaches a pod with a sandbox of its own; see the fixture `attach`."""


@pytest.fixture(autouse=True)
def close_idle_connections() -> Iterator[None]:
    """Closes kept-alive connections to the agent after each test."""
    yield
    idle_connections.close()


@pytest.fixture
def node(make_netns: Callable[[str], Netns]) -> Netns:
    return make_netns("node")


@pytest.fixture
def sandbox(make_netns: Callable[[str], Netns]) -> Netns:
    return make_netns("pod")


@pytest.fixture
def agent_socket() -> Iterator[str]:
    """A path short enough for a Unix socket, whatever the test's name."""
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        yield f"{folder}/agent.sock"


@pytest.fixture
def agent(agent_socket: str) -> Iterator[ScriptedAgent]:
    with ScriptedNodeAgent(agent_socket) as running:
        yield running


@pytest.fixture
def vrouter_agent(agent_socket: str) -> Iterator[ScriptedAgent]:
    with VrouterAgent(agent_socket) as running:
        yield running


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of SMALL_DISK bytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(params=[ENTRY_POINT, DAEMON])
def plugin(request: pytest.FixtureRequest, node: Netns, tmp_path: Path, agent_socket: str) -> Iterator[Plugin]:
    """The plugin through both callers, which must behave alike."""
    plugin = Plugin(node, tmp_path, agent_socket)
    if request.param == DAEMON:
        plugin.caller = ShimAndDaemon(node, plugin.node_file)
    yield plugin
    plugin.caller.close()


@pytest.fixture
def networks(plugin: Plugin, tmp_path: Path) -> Iterator[NodeNetworks]:
    """The namespaces of networks that the plugin's settings name."""
    found = NodeNetworks(tmp_path / "networks")
    plugin.settings["netns-dir"] = str(found.folder)
    yield found
    found.close()


@pytest.fixture
def pod(sandbox: Netns) -> PodSandbox:
    return PodSandbox(sandbox.path)


@pytest.fixture
def serve_pod(pod: PodSandbox) -> ServePod:
    """Gives an agent the pod's interfaces: `serve_pod(agent, 3)`; `change` alters each of them first."""

    def serve(agent: ScriptedAgent, count: int = 1, change: Callable[[Vmi], Vmi] = lambda vmi: vmi) -> list[Vmi]:
        vmis = [change(vmi) for vmi in make_vmis(count, uid=pod.uid)]
        agent.serve(pod.vm_name, vmis)
        return vmis

    return serve


@pytest.fixture
def attach(plugin: Plugin, make_netns: Callable[[str], Netns]) -> Attach:
    """Attaches another pod: `attach(agent, "name", interfaces=2)`, further options are those of the configuration."""

    def attach(agent: ScriptedAgent, name: str, *, interfaces: int = 1, **config: Any) -> PodSandbox:
        pod = PodSandbox(make_netns("pod").path, name=name)
        agent.serve(pod.vm_name, make_vmis(interfaces, uid=pod.uid, subnet=len(agent.virtual_machines) + 1))
        plugin.add(pod, **config).succeeded()
        return pod

    return attach


def until(condition: Callable[[], object]) -> None:
    """Polls until the condition holds: for changes of the kernel that cause no event."""
    for _ in Deadline(10).attempts(0.002, 0.05):
        if condition():
            return
    raise AssertionError("the condition did not become true within 10 s")
