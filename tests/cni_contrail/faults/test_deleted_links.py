"""A link is deleted, changed or replaced by hand between ADD and DEL: CHECK reports it, DEL succeeds."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod

Damage = Callable[[Netns, Netns], object]

DAMAGES: dict[str, Damage] = {
    "the host end of the first": lambda node, pod: node.ip("link", "delete", node.links()[0]),
    "the host end of the last": lambda node, pod: node.ip("link", "delete", node.links()[-1]),
    "the sandbox end": lambda node, pod: pod.ip("link", "delete", "eth1"),
    "all host ends": lambda node, pod: [node.ip("link", "delete", name) for name in node.links()],
    "its alias": lambda node, pod: node.ip("link", "set", node.links()[1], "alias", ""),
    "its group": lambda node, pod: node.ip("link", "set", node.links()[1], "group", "5"),
    "it is down": lambda node, pod: node.ip("link", "set", node.links()[1], "down"),
}


@pytest.fixture
def result(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod) -> Any:
    serve_pod(agent, 3)
    return plugin.add(pod).succeeded().document


@pytest.fixture(params=DAMAGES.values(), ids=list(DAMAGES))
def damage(request: pytest.FixtureRequest, plugin: Plugin, sandbox: Netns, result: Any) -> None:
    request.param(plugin.node, sandbox)


def test_del_leaves_nothing(
    damage: None, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    plugin.delete(pod).succeeded()
    assert (plugin.node.links(), sandbox.links(), plugin.files(), agent.ports) == ([], [], [], {})


def test_the_pod_can_be_attached_again(
    damage: None, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    plugin.delete(pod).succeeded()
    result = plugin.add(pod).succeeded().document
    assert sandbox.links() == ["eth0", "eth1", "eth2"]
    plugin.check(pod, previous=result).succeeded()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("the host end of the first", "eth0 does not exist"),
        ("the sandbox end", "eth1 does not exist"),
        ("all host ends", "eth2 does not exist"),
        ("its alias", "has the alias ''"),
        ("it is down", "is down"),
    ],
)
def test_check_names_the_difference(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, result: Any, name: str, words: str
) -> None:
    DAMAGES[name](plugin.node, sandbox)
    assert words in plugin.check(pod, previous=result).failed(105)


def test_a_foreign_link_that_took_over_the_name_is_kept(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, result: Any
) -> None:
    name = plugin.node.links()[1]
    plugin.node.ip("link", "delete", name)
    plugin.node.ip("link", "add", name, "type", "veth", "peer", "name", "other")
    plugin.node.ip("link", "set", name, "alias", "an operator's")
    assert "kept, its alias is not that of this attachment" in plugin.delete(pod).succeeded().stderr
    assert (sorted(plugin.node.links()), plugin.files(), agent.ports) == (["other", name], [], {})
