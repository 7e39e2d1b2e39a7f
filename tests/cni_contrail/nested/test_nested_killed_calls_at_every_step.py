"""kill -9 in nested mode, after each step of ADD and of DEL; whatever call follows, nothing is left.

As `faults/test_killed_calls_at_every_step`, which has veth pairs.
"""

import itertools
import json
import signal
from collections.abc import Callable, Iterator

import pytest

from cni_contrail.interfaces.names import vlan_link_name
from tests.cni_contrail.nested.conftest import Nested, vlan_links
from tests.support.kernel_state import everything
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox

pytestmark = pytest.mark.timeout(1200)  # a hundred calls or more, on an emulated kernel

MIN_STEPS = 8  # detects a harness that stopped counting
VLANS = [vlan_link_name("eth0", vlan) for vlan in (100, 200)]


@pytest.fixture
def clean(plugin: Plugin, sandbox: Netns, nested: Nested) -> Callable[[str], None]:
    """Checks that everything is as before and nothing is left."""
    nested(100, 100, 200)
    before = everything(sandbox)

    def check(when: str) -> None:
        assert everything(sandbox) == before, when
        assert vlan_links(plugin.node) == [], when
        left = [path for root in (plugin.state_dir, plugin.config_dir) if root.exists() for path in root.rglob("*")]
        assert left == [], when

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


def attach(plugin: Plugin, pod: PodSandbox, when: str) -> None:
    """ADD, which may have been complete when it was killed."""
    again = plugin.add(pod)
    if again.status:
        assert "already" in again.failed(102), when


def test_del_cleans_up_after_an_add_killed_at_any_step(
    plugin: Plugin, pod: PodSandbox, clean: Callable[[str], None]
) -> None:
    for when in killed_at_each_step(plugin, pod, "ADD"):
        plugin.delete(pod).succeeded()
        clean(when)


def test_add_succeeds_after_an_add_killed_at_any_step(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, clean: Callable[[str], None]
) -> None:
    for when in killed_at_each_step(plugin, pod, "ADD"):
        attach(plugin, pod, when)
        assert (sandbox.links(), vlan_links(plugin.node)) == (["eth0", "eth1", "eth2"], VLANS), when
        plugin.delete(pod).succeeded()
        clean(when)


@pytest.mark.parametrize("command", ["DEL", "GC"])
def test_nothing_is_left_after_a_del_killed_at_any_step(
    plugin: Plugin, pod: PodSandbox, clean: Callable[[str], None], command: str
) -> None:
    plugin.add(pod).succeeded()
    for when in killed_at_each_step(plugin, pod, "DEL"):
        if command == "DEL":
            plugin.delete(pod).succeeded()
        else:
            plugin.gc([]).succeeded()
        clean(when)
        plugin.add(pod).succeeded()
    clean("DEL survived")


def test_add_succeeds_after_a_del_killed_at_any_step(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, clean: Callable[[str], None]
) -> None:
    plugin.add(pod).succeeded()
    for when in killed_at_each_step(plugin, pod, "DEL"):
        attach(plugin, pod, when)
        assert (sandbox.links(), vlan_links(plugin.node)) == (["eth0", "eth1", "eth2"], VLANS), when
    clean("DEL survived")


def test_gc_cleans_up_after_an_add_killed_at_any_step(
    plugin: Plugin, pod: PodSandbox, clean: Callable[[str], None]
) -> None:
    for when in killed_at_each_step(plugin, pod, "ADD"):
        plugin.gc([]).succeeded()
        clean(when)


def test_another_pod_in_the_vlan_is_not_affected(
    plugin: Plugin, pod: PodSandbox, clean: Callable[[str], None], nested: Nested, make_netns: Callable[[str], Netns]
) -> None:
    """It comes and goes while a killed ADD of the first is unfinished."""
    netns = make_netns("pod")
    other = PodSandbox(netns.path, name="web-1")
    nested(100, 200, of=other, subnet=2)
    for when in killed_at_each_step(plugin, pod, "ADD"):
        plugin.add(other).succeeded()
        plugin.delete(pod).succeeded()
        assert (netns.links(), vlan_links(plugin.node)) == (["eth0", "eth1"], VLANS), when
        plugin.delete(other).succeeded()
        clean(when)
