"""CHECK in nested mode names each difference."""

from collections.abc import Callable

import pytest

from cni_contrail.interfaces.names import vlan_link_name
from tests.cni_contrail.nested.conftest import Nested
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox

VLAN_100 = vlan_link_name("eth0", 100)

Change = Callable[[Netns, Netns], object]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda node, pod: pod.ip("link", "del", "eth1"), "eth1 does not exist in the sandbox."),
        (lambda node, pod: pod.ip("link", "set", "eth1", "down"), "eth1 is down."),
        (
            lambda node, pod: pod.ip("link", "set", "eth1", "type", "macvlan", "mode", "private"),
            "eth1 is not in mode vepa.",
        ),
        (lambda node, pod: node.ip("link", "set", VLAN_100, "down"), f"{VLAN_100} is down."),
        (
            lambda node, pod: node.ip("link", "set", "eth0", "down"),
            "eth0, the parent of eth0, is down or does not exist.",
        ),
        (
            lambda node, pod: node.ip("link", "del", VLAN_100),
            "eth0 has no link for VLAN 100, over which eth0 was created.",
        ),
        (
            lambda node, pod: pod.ip("link", "set", "eth1", "down", "address", "02:00:00:00:00:77", "up"),
            "eth1 has the MAC address 02:00:00:00:00:77",
        ),
        (lambda node, pod: pod.ip("address", "flush", "dev", "eth1"), "eth1 does not have the address 10.1.1.5/24."),
    ],
)
def test_each_difference_is_named(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, node: Netns, nested: Nested, change: Change, sentence: str
) -> None:
    nested(100, 100)
    result = plugin.add(pod).succeeded().document
    plugin.check(pod, previous=result).succeeded()
    change(node, sandbox)
    assert sentence in plugin.check(pod, previous=result).failed(105)


def test_a_macvlan_over_another_link_is_a_difference(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, node: Netns, nested: Nested
) -> None:
    [vmi] = nested(100)
    result = plugin.add(pod).succeeded().document
    sandbox.ip("link", "del", "eth0")
    made = node.run(
        *("ip", "link", "add", "link", "eth0", "name", "temporary", "address", vmi.mac, "mtu", "1400"),
        *("netns", sandbox.name, "type", "macvlan", "mode", "vepa"),
    )
    assert made.returncode == 0, made
    sandbox.ip("link", "set", "temporary", "name", "eth0", "up")
    message = plugin.check(pod, previous=result).failed(105)
    assert f"eth0 is not over {VLAN_100}, the link for VLAN 100 of eth0." in message
