"""The sandbox's network namespace is deleted before, during or after a call."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cni_contrail.conftest import until
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ReceivedRequest, ScriptedAgent, ServePod

NothingIsLeft = Callable[[], None]


@pytest.fixture
def nothing_is_left(agent: ScriptedAgent, plugin: Plugin) -> NothingIsLeft:
    def check() -> None:
        assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})

    return check


class TestBeforeTheCall:
    def test_add_names_the_path_and_sends_no_request(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        nothing_is_left: NothingIsLeft,
    ) -> None:
        serve_pod(agent)
        sandbox.delete()
        message = plugin.add(pod).failed(4)
        assert message == f"CNI_NETNS: network namespace {pod.netns}: cannot open: No such file or directory"
        assert agent.requests == []
        nothing_is_left()

    def test_a_path_that_is_a_plain_file_is_named(
        self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, nothing_is_left: NothingIsLeft
    ) -> None:
        """The path stays a plain file after a reboot, or when the namespace was unmounted by hand."""
        sandbox.delete()
        path = Path(pod.netns)
        path.touch()
        try:
            assert plugin.add(pod).failed(4) == f"CNI_NETNS: {pod.netns} is not a network namespace"
            plugin.delete(pod).succeeded()
        finally:
            path.unlink()
        nothing_is_left()

    @pytest.mark.parametrize("command", ["DEL", "CHECK"])
    def test_del_succeeds_and_check_fails(
        self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, nothing_is_left: NothingIsLeft, command: str
    ) -> None:
        sandbox.delete()
        if command == "DEL":
            plugin.delete(pod).succeeded()
        else:
            plugin.check(pod, previous={}).failed(4)
        nothing_is_left()


class TestDuringTheCall:
    """The call keeps the namespace alive; its links are deleted when the call ends, if nothing else holds it."""

    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_add_finishes_and_del_cleans_up(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        nothing_is_left: NothingIsLeft,
        method: str,
    ) -> None:
        serve_pod(agent, 2)

        def vanish(seen: ReceivedRequest) -> None:
            if seen.method == method:
                sandbox.delete()

        agent.before(vanish)
        plugin.add(pod).succeeded()
        until(lambda: not plugin.node.links())
        plugin.delete(pod).succeeded()
        nothing_is_left()

    def test_del_finishes(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        nothing_is_left: NothingIsLeft,
    ) -> None:
        serve_pod(agent, 2)
        plugin.add(pod).succeeded()
        agent.before(lambda seen: sandbox.delete() if seen.method == "DELETE" else None)
        plugin.delete(pod).succeeded()
        nothing_is_left()


class TestAfterTheCall:
    @pytest.fixture
    def attached(self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod) -> PodSandbox:
        serve_pod(agent, 3)
        plugin.add(pod).succeeded()
        return pod

    def test_del_succeeds_while_the_kernel_still_deletes_the_links(
        self, attached: PodSandbox, plugin: Plugin, sandbox: Netns, nothing_is_left: NothingIsLeft
    ) -> None:
        sandbox.delete()
        plugin.delete(attached).succeeded()
        nothing_is_left()

    @pytest.mark.parametrize("netns", [None, ""])
    def test_del_succeeds_when_they_are_gone(
        self,
        attached: PodSandbox,
        plugin: Plugin,
        sandbox: Netns,
        nothing_is_left: NothingIsLeft,
        netns: str | None,
    ) -> None:
        sandbox.delete()
        until(lambda: not plugin.node.links())
        plugin.delete(attached, netns=netns).succeeded()
        nothing_is_left()

    def test_check_names_the_path(self, attached: PodSandbox, plugin: Plugin, sandbox: Netns) -> None:
        sandbox.delete()
        assert attached.netns in plugin.check(attached, previous={}).failed(4)

    def test_gc_releases_it(
        self, attached: PodSandbox, plugin: Plugin, sandbox: Netns, nothing_is_left: NothingIsLeft
    ) -> None:
        sandbox.delete()
        plugin.gc([]).succeeded()
        nothing_is_left()

    def test_another_sandbox_at_the_same_path_is_not_touched(
        self,
        attached: PodSandbox,
        plugin: Plugin,
        sandbox: Netns,
        make_netns: Callable[[str], Netns],
        nothing_is_left: NothingIsLeft,
    ) -> None:
        """As with `/proc/<pid>/ns/net` when the process ID is reused."""
        other = make_netns("pod")
        plugin.node.ip("link", "add", "tapother", "type", "veth", "peer", "name", "eth0", "netns", other.name)
        plugin.delete(attached, netns=other.path).succeeded()
        assert other.links() == ["eth0"]
        plugin.node.ip("link", "delete", "tapother")
        nothing_is_left()
