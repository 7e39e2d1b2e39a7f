"""kill -9 after each step of ADD and of DEL: each file that is changed, each request to the kernel, each to the agent.

Whatever call follows, nothing is left: links, addresses, routes, files, directories and ports are counted.
"""

import itertools
import json
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.support.kernel_state import everything
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ScriptedNodeAgent, Vmi, VrouterAgent, make_vmis

MIN_STEPS = 8  # detects a harness that stopped counting


@pytest.fixture(params=[ScriptedNodeAgent, VrouterAgent])
def either_agent(request: pytest.FixtureRequest, agent_socket: str) -> Iterator[ScriptedAgent]:
    with request.param(agent_socket) as running:
        yield running


@pytest.fixture
def vmis(either_agent: ScriptedAgent, pod: PodSandbox, sandbox: Netns, plugin: Plugin) -> list[Vmi]:
    """Two interfaces, of which the second replaces an existing default route."""
    sandbox.ip("link", "add", "mgmt", "type", "veth", "peer", "name", "mgmt-end")
    for name in ("mgmt", "mgmt-end"):
        sandbox.ip("link", "set", name, "up", "addrgenmode", "none")
    sandbox.ip("address", "add", "192.0.2.2/24", "dev", "mgmt")
    sandbox.ip("route", "add", "default", "via", "192.0.2.1", "proto", "static")
    first, second = make_vmis(2, uid=pod.uid)
    vmis = [first, second.annotated(default_gw="ipv4")]
    either_agent.serve(pod.vm_name, vmis)
    return vmis


@pytest.fixture
def clean(either_agent: ScriptedAgent, plugin: Plugin, sandbox: Netns, vmis: list[Vmi]) -> Callable[[str], None]:
    """Checks that everything is as before and nothing is left."""
    before = everything(sandbox)

    def check(when: str) -> None:
        assert everything(sandbox) == before, when
        assert plugin.node.links() == [], when
        assert either_agent.ports == {}, when
        left = [path for root in (plugin.state_dir, plugin.config_dir) if root.exists() for path in root.rglob("*")]
        assert left == [], when

    return check


@pytest.fixture
def attached(
    either_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, vmis: list[Vmi]
) -> Callable[[str], None]:
    """Checks that the pod is attached completely."""

    def check(when: str) -> None:
        assert sandbox.links()[2:] == ["eth0", "eth1"], when
        assert "default via 10.1.1.1 dev eth1" in sandbox.ip("route"), when
        assert len(plugin.node.links()) == 2, when
        assert either_agent.owners() == {vmi.uuid: pod.container for vmi in vmis}, when
        assert plugin.record(pod)["finished"], when

    return check


def killed_at_each_step(plugin: Plugin, pod: PodSandbox, command: str) -> Iterator[str]:
    """Kills the call at the first step, then at the second, and so on, until it survives."""
    config = json.dumps(plugin.config())
    for number in itertools.count(1):
        outcome = plugin.call(plugin.environment(command, pod), config, kill_at=number)
        if outcome.status == 0:
            assert number > MIN_STEPS
            return
        assert outcome.status == -signal.SIGKILL, outcome
        yield f"{command} was killed at step {number}"


def test_del_cleans_up_after_an_add_killed_at_any_step(
    plugin: Plugin, pod: PodSandbox, clean: Callable[[str], None]
) -> None:
    for when in killed_at_each_step(plugin, pod, "ADD"):
        plugin.delete(pod).succeeded()
        clean(when)


def test_add_succeeds_after_an_add_killed_at_any_step(
    plugin: Plugin, pod: PodSandbox, attached: Callable[[str], None], clean: Callable[[str], None]
) -> None:
    for when in killed_at_each_step(plugin, pod, "ADD"):
        again = plugin.add(pod)
        if again.status:  # it was killed when it had ended, before it could answer
            assert "already" in again.failed(102), when
        attached(when)
        plugin.delete(pod).succeeded()
        clean(when)


def test_del_cleans_up_after_a_del_killed_at_any_step(
    plugin: Plugin, pod: PodSandbox, clean: Callable[[str], None]
) -> None:
    plugin.add(pod).succeeded()
    for when in killed_at_each_step(plugin, pod, "DEL"):
        plugin.delete(pod).succeeded()
        clean(when)
        plugin.add(pod).succeeded()
    clean("DEL survived")


def test_add_succeeds_after_a_del_killed_at_any_step(
    plugin: Plugin, pod: PodSandbox, attached: Callable[[str], None], clean: Callable[[str], None]
) -> None:
    plugin.add(pod).succeeded()
    for when in killed_at_each_step(plugin, pod, "DEL"):
        again = plugin.add(pod)
        if again.status:  # it was killed before it had begun
            assert "already" in again.failed(102), when
        attached(when)
    clean("DEL survived")


def test_gc_cleans_up_after_an_add_killed_at_any_step(
    plugin: Plugin, pod: PodSandbox, either_agent: ScriptedAgent, sandbox: Netns, vmis: list[Vmi]
) -> None:
    """GC releases what no DEL removes, except default routes: only DEL knows the sandbox and restores them."""
    for when in killed_at_each_step(plugin, pod, "ADD"):
        plugin.gc([]).succeeded()
        assert (plugin.node.links(), plugin.files(), either_agent.ports) == ([], [], {}), when
        assert sandbox.links() == ["mgmt-end", "mgmt"], when
