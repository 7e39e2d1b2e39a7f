"""A runtime may forget a sandbox, or die: what was attached to it is found and freed by later calls for others."""

import fcntl
import json
import os
import subprocess
from collections.abc import Callable

import pytest

from tests.cni_contrail.conftest import Attach, until
from tests.support.netns import Netns
from tests.support.plugin import Outcome, Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod, make_vmis

NextCall = Callable[[], Outcome]


@pytest.fixture(params=["ADD", "DEL"])
def next_call(
    request: pytest.FixtureRequest, agent: ScriptedAgent, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> NextCall:
    """A call for a pod that has nothing to do with it all."""
    pod = PodSandbox(make_netns("pod").path, name="another")
    agent.serve(pod.machine_name, make_vmis(1, uid=pod.uid, subnet=99))
    if request.param == "DEL":
        plugin.add(pod).succeeded()
        return lambda: plugin.delete(pod).succeeded()
    return lambda: plugin.add(pod).succeeded()


def vanish(plugin: Plugin, *pods: PodSandbox) -> None:
    """The sandboxes go, and the kernel takes their links down."""
    hosts = {each["plan"]["host_name"] for pod in pods for each in plugin.record(pod)["interfaces"]}
    for pod in pods:
        subprocess.run(["ip", "netns", "del", os.path.basename(pod.netns)], check=True)
    until(lambda: not hosts & set(plugin.node.links()))


def test_the_next_call_frees_it_and_tells_the_agent(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
) -> None:
    pod = attach(agent, "gone", interfaces=3)
    vanish(plugin, pod)
    next_call()
    assert not plugin.record_path(pod).parent.exists()
    assert pod.container not in agent.owners().values()


def test_work_is_bounded_and_later_calls_find_the_rest(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, pod: PodSandbox
) -> None:
    gone = [attach(agent, f"gone-{number}") for number in range(6)]
    vanish(plugin, *gone)
    plugin.delete(pod).succeeded()
    assert len(list(plugin.state_dir.glob("*/eth0.json"))) == 2
    plugin.delete(pod).succeeded()
    assert list(plugin.state_dir.glob("*/eth0.json")) == []


def test_all_of_them_get_their_turn_among_those_that_live(agent: ScriptedAgent, plugin: Plugin, attach: Attach) -> None:
    pods = [attach(agent, f"pod-{number}") for number in range(8)]
    gone = max(pods, key=lambda pod: pod.container)
    vanish(plugin, gone)
    for pod in pods:
        if pod is not gone:
            plugin.delete(pod).succeeded()
    assert plugin.files() == []
    assert agent.ports == {}


def test_one_that_was_killed_before_it_made_anything_is_freed(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, next_call: NextCall
) -> None:
    came = agent.stall("GET", f"/vm-cfg/{pod.machine_name}")
    adding = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config()))
    assert came.wait(10)
    plugin.kill(adding)
    adding.communicate(timeout=10)
    sandbox.delete()
    next_call()
    assert not plugin.record_path(pod).exists()


def test_a_sandbox_is_known_by_its_number_where_its_path_cannot_be_seen(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
) -> None:
    """The path in the record stands for one in another mount namespace."""
    gone, damaged = attach(agent, "gone"), attach(agent, "damaged")
    for pod in (gone, damaged):
        record = plugin.record(pod)
        assert record["sandbox_id"] >= 0
        plugin.record_path(pod).write_text(json.dumps({**record, "netns": "/run/netns/of-another-mount-namespace"}))
    plugin.node.ip("link", "delete", plugin.record(damaged)["interfaces"][0]["plan"]["host_name"])
    vanish(plugin, gone)
    next_call()
    assert not plugin.record_path(gone).exists()
    assert plugin.record_path(damaged).exists()


def test_a_number_that_was_given_to_another_sandbox_is_no_sign_of_life(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
) -> None:
    pod = attach(agent, "gone")
    vanish(plugin, pod)
    other = attach(agent, "other")
    path = plugin.record_path(pod)
    if path.exists():  # the ADD of the other one may have freed it already
        path.write_text(json.dumps({**plugin.record(pod), "sandbox_id": plugin.record(other)["sandbox_id"]}))
    next_call()
    assert not path.exists()
    assert plugin.record_path(other).exists()


class TestWhatIsSpared:
    def test_a_sandbox_whose_links_somebody_deleted(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
    ) -> None:
        """It is still there: CHECK shall tell what is missing, and DEL puts back default routes."""
        pod = attach(agent, "damaged", interfaces=2)
        for each in plugin.record(pod)["interfaces"]:
            plugin.node.ip("link", "delete", each["plan"]["host_name"])
        next_call()
        assert plugin.record_path(pod).exists()

    def test_links_whose_sandbox_is_not_where_it_was(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
    ) -> None:
        """Its path is gone, but something holds the namespace itself."""
        pod = attach(agent, "held")
        held = os.open(pod.netns, os.O_RDONLY)
        try:
            subprocess.run(["ip", "netns", "del", os.path.basename(pod.netns)], check=True)
            next_call()
            assert plugin.record_path(pod).exists()
        finally:
            os.close(held)

    def test_an_add_under_way_whose_sandbox_goes(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, next_call: NextCall
    ) -> None:
        settings = {"poll-timeout": 3, "poll-retries": 20}
        adding = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config(settings=settings)))
        until(plugin.record_path(pod).exists)
        sandbox.delete()
        next_call()
        assert plugin.record_path(pod).exists()
        agent.serve(pod.machine_name, make_vmis(1, uid=pod.uid))
        adding.communicate(timeout=20)
        assert adding.returncode == 0

    def test_what_was_attached_from_another_network_namespace(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        attach: Attach,
        make_netns: Callable[[str], Netns],
        next_call: NextCall,
    ) -> None:
        """Two nodes in namespaces that share a state directory: the links of the other are not seen from here."""
        other = PodSandbox(make_netns("pod").path, name="other")
        agent.serve(other.machine_name, make_vmis(1, uid=other.uid))
        other_node = Plugin(make_netns("node"), plugin.folder, agent.socket_path)
        other_node.add(other).succeeded()
        vanish(other_node, other)
        next_call()
        assert plugin.record_path(other).exists()

    def test_a_record_of_the_version_before_which_does_not_tell_its_namespace(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
    ) -> None:
        pod = attach(agent, "old")
        vanish(plugin, pod)
        record = {**plugin.record(pod), "version": 1}
        del record["network"], record["host_netns"]
        plugin.record_path(pod).write_text(json.dumps(record))
        next_call()
        assert plugin.record_path(pod).exists()

    def test_a_container_that_another_call_is_at(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall
    ) -> None:
        pod = attach(agent, "busy")
        vanish(plugin, pod)
        held = os.open(plugin.state_dir / pod.container, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            next_call()
        finally:
            os.close(held)
        assert plugin.record_path(pod).exists()

    def test_a_damaged_record(self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, next_call: NextCall) -> None:
        pod = attach(agent, "damaged")
        plugin.record_path(pod).write_bytes(b"")
        next_call()
        assert plugin.record_path(pod).exists()


def test_what_a_machine_remembers_of_before_its_restart_is_freed(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, pod: PodSandbox, serve_pod: ServePod
) -> None:
    """With a state directory that is not on tmpfs; the agent learns of it too, even if it starts later."""
    before = [attach(agent, f"pod-{number}", interfaces=2) for number in range(3)]
    agent.stop()
    vanish(plugin, *before)
    plugin.delete(before[0], netns="").succeeded()
    agent.start()
    serve_pod(agent)
    plugin.add(pod).succeeded()
    assert [path for path in plugin.files() if pod.container not in path] == []
    assert set(agent.owners().values()) == {pod.container}
