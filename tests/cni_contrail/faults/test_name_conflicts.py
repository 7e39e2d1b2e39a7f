"""Name conflicts: the existing link is kept, nothing is created, and the error names it."""

import pytest

from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod


def test_an_existing_link_in_the_sandbox_is_kept_and_named(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    serve_pod(agent, 3)
    sandbox.ip("link", "add", "eth1", "type", "veth", "peer", "name", "other")
    assert "eth1" in plugin.add(pod).failed(102)
    assert sorted(sandbox.links()) == ["eth1", "other"]
    assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})


@pytest.mark.parametrize("alias", ["", "foreign"])
@pytest.mark.parametrize("position", [0, 2])
def test_an_existing_link_on_the_host_is_kept_and_named(
    agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    sandbox: Netns,
    serve_pod: ServePod,
    alias: str,
    position: int,
) -> None:
    """For the first interface, or the last one, after the others are created."""
    serve_pod(agent, 3)
    plugin.add(pod).succeeded()
    name = plugin.record(pod)["interfaces"][position]["plan"]["host_name"]
    plugin.delete(pod).succeeded()
    plugin.node.ip("link", "add", name, "type", "veth", "peer", "name", "other")
    plugin.node.ip("link", "set", name, "alias", alias)
    message = plugin.add(pod).failed(102)
    assert name in message
    assert f"eth{position}" in message
    assert sorted(plugin.node.links()) == sorted([name, "other"])
    assert (sandbox.links(), plugin.files(), agent.ports) == ([], [], {})
    plugin.delete(pod).succeeded()
    assert sorted(plugin.node.links()) == sorted([name, "other"])


def test_the_pod_is_attached_once_the_name_is_free(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    serve_pod(agent)
    sandbox.ip("link", "add", "eth0", "type", "veth", "peer", "name", "other")
    plugin.add(pod).failed(102)
    sandbox.ip("link", "delete", "eth0")
    plugin.add(pod).succeeded()
