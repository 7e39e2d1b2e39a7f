"""A node that is a virtual machine: its `eth0` leads to a switch, and its pods' interfaces are VLANs of it.

These tests need a kernel with 802.1Q and macvlan; `scripts/kernels` has two. They fail on any other.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent, Vmi, VrouterAgent, make_vmis

Nested = Callable[..., list[Vmi]]
"""Makes the agent serve a pod's interfaces in VLANs: `nested(100, 100, 200)` has three in two."""


@pytest.fixture(scope="session", autouse=True)
def kernel_with_vlans() -> None:
    namespace = Netns("probe")
    try:
        namespace.ip("link", "add", "probe0", "type", "veth", "peer", "name", "probe1")
        for name, *kind in (("probe2", "vlan", "id", "5"), ("probe3", "macvlan", "mode", "vepa")):
            made = namespace.run("ip", "link", "add", "link", "probe0", "name", name, "type", *kind)
            if made.returncode:
                pytest.fail(f"this kernel has no links of kind {kind[0]} ({made.stderr.strip()}): use scripts/kernels")
    finally:
        namespace.delete()


@pytest.fixture
def switch(make_netns: Callable[[str], Netns], node: Netns) -> Netns:
    """The other end of the node's `eth0`, its only link `port`."""
    switch = make_netns("switch")
    node.ip("link", "add", "eth0", "type", "veth", "peer", "name", "port", "netns", switch.name)
    node.ip("link", "set", "eth0", "up")
    switch.ip("link", "set", "port", "up")
    return switch


@pytest.fixture
def agent(request: pytest.FixtureRequest, agent_socket: str) -> Iterator[ScriptedAgent]:
    """The Contrail vrouter agent, on the host of the virtual machine, unless a test names another kind."""
    kind: type[ScriptedAgent] = getattr(request, "param", VrouterAgent)
    with kind(agent_socket) as running:
        yield running


@pytest.fixture
def caller(node: Netns, tmp_path: Path) -> Iterator[ShimAndDaemon]:
    """Shim and daemon, which reads the plugin's node-wide file."""
    caller = ShimAndDaemon(node, tmp_path / "cni.json")
    yield caller
    caller.close()


@pytest.fixture
def plugin(node: Netns, switch: Netns, agent_socket: str, tmp_path: Path, caller: ShimAndDaemon) -> Plugin:
    """The plugin through shim and daemon, in nested mode."""
    plugin = Plugin(node, tmp_path, agent_socket)
    plugin.settings |= {"vif-type": "macvlan", "parent-interface": "eth0", "mtu": 1400}
    plugin.caller = caller
    return plugin


@pytest.fixture
def nested(pod: PodSandbox, agent: ScriptedAgent) -> Nested:
    def serve(*vlans: Any, of: PodSandbox = pod, subnet: int = 1) -> list[Vmi]:
        vmis = make_vmis(len(vlans), uid=of.uid, subnet=subnet)
        vmis = [replace(vmi, vlan=vlan, mtu=1400) for vmi, vlan in zip(vmis, vlans, strict=True)]
        agent.serve(of.vm_name, vmis)
        return vmis

    return serve


def vlan_links(node: Netns) -> list[str]:
    """Names of the node's links other than its parent interface."""
    return [name for name in node.links() if name != "eth0"]
