"""The client of the node agent: which answers are success."""

from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ReceivedRequest, Reply, ScriptedAgent, ServePod


def test_no_content_answers_a_plug_and_an_unplug(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
) -> None:
    serve_pod(agent, 2)

    def without_content(seen: ReceivedRequest) -> Reply | None:
        if seen.method == "GET":
            return None
        agent.default_reply(seen)
        return Reply(204, raw=b"")

    agent.before(without_content)
    plugin.add(pod).succeeded()
    assert len(agent.ports) == 2
    plugin.delete(pod).succeeded()
    assert (plugin.files(), agent.ports) == ([], {})


def test_no_content_is_no_list_of_interfaces(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox) -> None:
    agent.before(lambda seen: Reply(204, raw=b""))
    assert "204" in plugin.add(pod).failed(101)


def test_texts_of_the_agent_are_cut_in_errors(plugin: Plugin, agent: ScriptedAgent, pod: PodSandbox) -> None:
    agent.before(lambda seen: Reply(500, {"error": "x" * 320_000}))
    assert len(plugin.add(pod).failed(101)) < 1024
    agent.before(lambda seen: Reply(503, {"reasons": ["y" * 10_000] * 1000}))
    assert len(plugin.status().failed(50)) < 8192
