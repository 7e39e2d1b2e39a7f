"""Tunnels that somebody else changed, or whose node has another address, are brought back to what is desired."""

import contextlib
import socket
import subprocess
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from cni_contrail.datapath.node_reconciler import STALE_SECONDS
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.message import NetlinkRequest
from tests.cni_contrail.conftest import until
from tests.cni_contrail.datapath.tunnels.conftest import BLUE, RED, Pair, connected, objects
from tests.support.echo import reaches
from tests.support.node_fabric import Capture, Cluster


def test_nothing_is_changed_where_all_is_as_desired(cluster: Cluster, pair: Pair) -> None:
    assert pair
    cluster.let_removals_begin()
    for outcome in cluster.sync():
        assert set(outcome.changes.values()) == {0}


DAMAGE = [
    ["ip", "link", "delete", "vx0"],
    ["ip", "link", "set", "vx0", "down"],
    ["ip", "link", "set", "vx0", "nomaster"],
    ["ip", "link", "set", "vx0", "mtu", "1300"],
    ["ip", "link", "set", "vx0", "address", "02:00:00:00:00:99"],
    ["ip", "link", "set", "vx0", "type", "vxlan", "learning"],
    ["bridge", "link", "set", "dev", "vx0", "learning", "on"],
    ["bridge", "link", "set", "dev", "vx0", "flood", "on"],
    ["bridge", "link", "set", "dev", "vx0", "mcast_flood", "on"],
    ["bridge", "link", "set", "dev", "vx0", "bcast_flood", "on"],
    ["bridge", "link", "set", "dev", "vx0", "neigh_suppress", "off"],
    ["bridge", "fdb", "delete", "02:00:00:00:00:03", "dev", "vx0", "self"],
    ["bridge", "fdb", "delete", "02:00:00:00:00:03", "dev", "vx0", "master"],
    ["bridge", "fdb", "replace", "02:00:00:00:00:03", "dev", "vx0", "dst", "192.0.2.77", "self", "static"],
    ["bridge", "fdb", "replace", "02:00:00:00:00:03", "dev", "tap2", "master", "static"],
    ["ip", "neighbour", "delete", "10.7.0.3", "dev", "br0"],
    ["ip", "neighbour", "replace", "fd07::3", "lladdr", "02:00:00:00:00:99", "dev", "br0"],
    ["ip", "link", "delete", "br0"],
    ["nft", "flush", "ruleset"],
]


@pytest.mark.parametrize("damage", DAMAGE, ids=" ".join)
def test_what_was_changed_by_hand_is_repaired(cluster: Cluster, pair: Pair, damage: list[str]) -> None:
    node = pair[0].node
    cluster.let_removals_begin()
    before = objects(cluster)
    node.networks.run(RED, *damage)
    assert cluster.sync()[0].changes[RED] > 0
    assert cluster.sync()[0].changes[RED] == 0
    connected(pair)
    assert objects(cluster) == before


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damages=some.lists(some.sampled_from(DAMAGE), min_size=2, max_size=12))
def test_any_sequence_of_changes_by_hand_is_repaired(cluster: Cluster, pair: Pair, damages: list[list[str]]) -> None:
    cluster.let_removals_begin()
    before = objects(cluster)
    for damage in damages:
        with contextlib.suppress(subprocess.CalledProcessError):  # what it changes may be gone by now
            pair[0].node.networks.run(RED, *damage)
    cluster.sync()
    assert cluster.sync()[0].changes[RED] == 0
    connected(pair)
    assert objects(cluster) == before


def test_a_tunnel_is_set_up_after_its_entries_and_a_stale_one_goes_last(
    cluster: Cluster, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = pair[0].node
    cluster.let_removals_begin()
    node.networks.run(RED, "ip", "link", "delete", "vx0")
    options = ("id", "77", "local", "2001:db8::1", "dstport", "4790")
    node.networks.run(RED, "ip", "link", "add", "vx6", "type", "vxlan", *options)
    node.networks.run(RED, "ip", "neighbour", "delete", "10.7.0.3", "dev", "br0")
    done: list[str] = []
    execute_all = RouteSocket.execute_all

    def recorded(kernel: RouteSocket, requests: Sequence[NetlinkRequest]) -> None:
        done.extend(each.what for each in requests)
        execute_all(kernel, requests)

    monkeypatch.setattr(RouteSocket, "execute_all", recorded)
    cluster.sync()
    entries = [done.index(each) for each in done if each.startswith(("vx0: send frames", "set neighbour 10.7.0.3"))]
    assert entries
    assert max(entries) < done.index("set link vx0 up") < done.index("delete link vx6")
    assert not [each for each in done[done.index("delete link vx6") :] if each.startswith(("vx0", "set neighbour"))]
    connected(pair)


@pytest.mark.parametrize(
    "attributes",
    [
        ["id", str(RED), "local", "192.0.2.1", "dstport", "4790", "nolearning"],
        ["id", str(BLUE), "local", "192.0.2.1", "dstport", "4789", "nolearning"],
        ["id", str(RED), "local", "2001:db8::1", "dstport", "4789", "nolearning"],
        ["id", str(RED), "local", "192.0.2.1", "dstport", "4789", "nolearning", "noudpcsum"],
    ],
    ids=["port", "VNI", "family", "checksums"],
)
def test_a_tunnel_that_cannot_be_changed_is_replaced(cluster: Cluster, pair: Pair, attributes: list[str]) -> None:
    node = pair[0].node
    before = objects(cluster)
    node.networks.run(RED, "ip", "link", "delete", "vx0")
    node.run("ip", "link", "add", "vx0", "type", "vxlan", *attributes)
    node.run("ip", "link", "set", "vx0", "netns", str(node.networks.namespaces.path(RED)))
    cluster.sync()
    connected(pair)
    assert objects(cluster) == before


def test_a_tunnel_whose_packets_stay_in_the_namespace_is_replaced(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    node.networks.run(RED, "ip", "link", "delete", "vx0")
    options = ("id", str(RED), "local", "192.0.2.1", "dstport", "4789", "nolearning")
    node.networks.run(RED, "ip", "link", "add", "vx0", "type", "vxlan", *options)
    cluster.sync()
    connected(pair)


def test_what_was_added_by_hand_is_removed(cluster: Cluster, pair: Pair) -> None:
    cluster.let_removals_begin()
    before = objects(cluster)
    run = pair[0].node.networks.run
    run(RED, "bridge", "fdb", "add", "02:00:00:00:00:77", "dev", "vx0", "dst", "192.0.2.2", "self", "master", "static")
    run(RED, "ip", "neighbour", "add", "10.7.0.77", "lladdr", "02:00:00:00:00:77", "nud", "permanent", "dev", "br0")
    assert cluster.sync()[0].changes[RED] == 3
    assert objects(cluster) == before


def test_a_changed_tunnel_address_is_followed(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    before = node.networks.run(RED, "ip", "-o", "link", "show", "vx0").split(":")[0]
    node.namespace.ip("address", "delete", f"{node.tunnel}/24", "dev", "eth0")
    node.namespace.ip("address", "add", "192.0.2.101/24", "dev", "eth0")
    node.addresses = ("192.0.2.101", *node.addresses[1:])
    cluster.sync()
    connected(pair)
    with Capture(cluster, node) as capture:
        capture.tunnelled()
        assert reaches(pair[0].namespace, pair[1].ipv4)
        assert all(socket.inet_aton("192.0.2.101") in frame[:34] for frame in capture.tunnelled())
    assert node.networks.run(RED, "ip", "-o", "link", "show", "vx0").split(":")[0] == before


def test_a_changed_tunnel_address_is_followed_while_the_node_keeps_the_old_one(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    assert reaches(pair[0].namespace, pair[1].ipv4)
    node.namespace.ip("address", "add", "192.0.2.101/24", "dev", "eth0")
    node.addresses = ("192.0.2.101", *node.addresses[1:])
    cluster.sync()
    with Capture(cluster, node) as capture:
        capture.tunnelled()
        assert reaches(pair[0].namespace, pair[1].ipv4)
        assert all(socket.inet_aton("192.0.2.101") in frame[:34] for frame in capture.tunnelled())


def test_a_network_that_is_removed_can_be_made_again_at_once(cluster: Cluster, pair: Pair) -> None:
    first, second = pair
    node = first.node
    for pod in pair:
        cluster.remove_pod(pod)
    node.reconcile([], cluster.underlay(node))
    cluster.clock.advance(STALE_SECONDS)
    assert node.reconcile([], cluster.underlay(node)).removed == {RED}
    cluster.add_pod(node, RED, 2)
    cluster.add_pod(second.node, RED, 3)
    cluster.sync()
    connected((cluster.pods[0], cluster.pods[1]))


def test_a_namespace_that_was_deleted_by_hand_is_made_again_with_its_tunnel(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    node.networks.namespaces.delete(RED)
    cluster.pods.remove(pair[0])
    successor = cluster.add_pod(node, RED, 2)
    # the kernel removes the old tunnel some time after the namespace's name, and the number is taken until then
    until(lambda: not any(outcome.problems for outcome in cluster.reconcile()))
    connected((successor, pair[1]))
