"""Many pods in one VLAN in nested mode, attached and detached at the same time."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from cni_contrail.interfaces.names import vlan_link_name
from tests.cni_contrail.nested.conftest import Nested, vlan_links
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox

PODS = 16
PATIENT = {"poll-timeout": 1, "poll-retries": 60}  # an emulated kernel is slow


def make_pods(make_netns: Callable[[str], Netns], nested: Nested) -> list[tuple[PodSandbox, Netns]]:
    pods = []
    for number in range(PODS):
        netns = make_netns("pod")
        pods.append((PodSandbox(netns.path, name=f"web-{number}"), netns))
        nested(100, of=pods[-1][0], subnet=number + 1)
    return pods


def test_pods_share_one_vlan_link(plugin: Plugin, nested: Nested, make_netns: Callable[[str], Netns]) -> None:
    """All ADDs, then all DELs at once, of which the last one deletes the link."""
    pods = make_pods(make_netns, nested)
    with ThreadPoolExecutor(PODS) as calls:
        for added in calls.map(lambda pod: plugin.add(pod[0], settings=PATIENT), pods):
            added.succeeded()
        assert vlan_links(plugin.node) == [vlan_link_name("eth0", 100)]
        assert [netns.links() for _, netns in pods] == [["eth0"]] * PODS
        for deleted in calls.map(lambda pod: plugin.delete(pod[0]), pods):
            deleted.succeeded()
    assert [netns.links() for _, netns in pods] == [[]] * PODS
    assert (vlan_links(plugin.node), plugin.files()) == ([], [])


def test_pods_come_while_others_go(plugin: Plugin, nested: Nested, make_netns: Callable[[str], Netns]) -> None:
    """The VLAN link may be deleted and created again at any moment; every ADD has one."""
    pods = make_pods(make_netns, nested)

    def come_and_go(pod: tuple[PodSandbox, Netns]) -> None:
        plugin.add(pod[0], settings=PATIENT).succeeded()
        assert pod[1].links() == ["eth0"]
        plugin.delete(pod[0]).succeeded()
        assert pod[1].links() == []

    with ThreadPoolExecutor(8) as calls:
        list(calls.map(come_and_go, random.sample(pods, len(pods))))
    assert (vlan_links(plugin.node), plugin.files()) == ([], [])
