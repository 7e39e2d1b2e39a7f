"""Index 0 in several networks of one node: pods of isolated networks reach each other, the node and Services."""

import contextlib
import itertools
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from tests.cni_contrail.datapath.routed.conftest import (
    GATEWAYS,
    NODE_OUTSIDE,
    OUTSIDE,
    REMOTE,
    RoutedNode,
    RoutedPod,
)
from tests.support.echo import reaches
from tests.support.netns import Netns

FIRST, SECOND = 7, 9
SERVICES = ("10.96.0.1", "fd96::1")
PORT = 8080


class Pods(NamedTuple):
    """Two pods in the cluster's network, two in an isolated one, and one in another isolated one."""

    cluster: RoutedPod
    other: RoutedPod
    first: RoutedPod
    sibling: RoutedPod
    second: RoutedPod


@pytest.fixture
def pods(node: RoutedNode) -> Pods:
    """Connected as ADD does it."""
    numbers = itertools.count(2)
    added = Pods(*(node.add_pod(next(numbers), network=network) for network in (0, 0, FIRST, FIRST, SECOND)))
    for pod in added:
        node.connect(pod)
    return added


def assert_reaches(source: RoutedPod, target: RoutedPod, *, is_allowed: bool) -> None:
    """Both families."""
    timeout = 5.0 if is_allowed else 0.25
    reached = [reaches(source.namespace, address, timeout=timeout) for address in target.port.addresses]
    assert reached == [is_allowed] * 2, (source.port, target.port)


def assert_isolated(node: RoutedNode, pods: Pods) -> None:
    for source, target in itertools.permutations(pods, 2):
        assert_reaches(source, target, is_allowed=source.port.network == target.port.network)
    for pod in pods:
        for address in pod.port.addresses:
            assert reaches(node.namespace, address)


def test_pods_reach_exactly_those_of_their_network_and_the_node_reaches_all(node: RoutedNode, pods: Pods) -> None:
    assert_isolated(node, pods)


def test_the_reconciler_makes_the_same_and_then_changes_nothing(node: RoutedNode, pods: Pods) -> None:
    connected = node.objects()
    assert node.reconcile().changes == 0
    assert node.objects() == connected
    node.run("nft", "delete", "table", "inet", "contrail")
    for pod in pods:
        node.run("ip", "link", "set", pod.port.link, "group", "1")
    assert node.reconcile().changes
    assert_isolated(node, pods)
    assert node.reconcile().changes == 0


def test_pods_of_all_networks_reach_the_node_and_the_outside(pods: Pods) -> None:
    for pod in pods:
        for address in (*GATEWAYS, *NODE_OUTSIDE, *OUTSIDE):
            assert reaches(pod.namespace, address)


def add_services(node: RoutedNode, target: RoutedPod) -> None:
    """As kube-proxy: the destination is translated before the packet is routed."""
    for family, service, address in zip(("ip", "ip6"), SERVICES, target.port.addresses, strict=True):
        node.run("nft", f"add table {family} services")
        node.run("nft", f"add chain {family} services to {{ type nat hook prerouting priority dstnat; }}")
        node.run("nft", f"add rule {family} services to {family} daddr {service} dnat to {address}")


@contextlib.contextmanager
def listening(server: Netns) -> Iterator[None]:
    """The namespace accepts TCP connections to any of its addresses."""
    with ExitStack() as stack:
        for family, address in ((socket.AF_INET, ""), (socket.AF_INET6, "::")):
            with server.inside():
                stack.enter_context(socket.create_server((address, PORT), family=family))
        yield


def connects(source: Netns, address: str, *, timeout: float = 5) -> bool:
    """Whether the namespace opens a TCP connection to the address within `timeout` seconds."""
    with source.inside():
        connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    with connection:
        connection.settimeout(timeout)
        return connection.connect_ex((address, PORT)) == 0


def test_services_of_the_cluster_are_reached_from_all_networks(node: RoutedNode, pods: Pods) -> None:
    add_services(node, pods.cluster)
    with listening(pods.cluster.namespace), listening(pods.first.namespace):
        for pod in (pods.other, pods.first, pods.second):
            assert all(connects(pod.namespace, service) for service in SERVICES)
        for source, target in ((pods.first, pods.cluster), (pods.cluster, pods.first)):
            for address in target.port.addresses:
                assert not connects(source.namespace, address, timeout=0.5)


def test_echo_requests_find_no_way_to_another_network_through_a_service(node: RoutedNode, pods: Pods) -> None:
    add_services(node, pods.cluster)
    # The kernel translates one request of two with the same identifier, and marks it as if for a Service.
    for target in (*SERVICES, *pods.cluster.port.addresses):
        assert not reaches(pods.first.namespace, target, timeout=0.5)
    assert_reaches(pods.cluster, pods.first, is_allowed=False)


def test_services_of_an_isolated_network_are_reached_from_it_and_from_the_outside(node: RoutedNode, pods: Pods) -> None:
    add_services(node, pods.first)
    for service in SERVICES:
        gateway = NODE_OUTSIDE[1] if ":" in service else NODE_OUTSIDE[0]
        node.outside.ip("route", "add", service, "via", gateway)
    with listening(pods.first.namespace):
        for service in SERVICES:
            assert connects(pods.sibling.namespace, service)
            assert connects(node.outside, service)
            for stranger in (pods.cluster, pods.second):
                assert not connects(stranger.namespace, service, timeout=0.5)


def test_only_the_network_of_the_cluster_reaches_other_nodes_and_through_services(node: RoutedNode, pods: Pods) -> None:
    remote = node.add_remote()
    for own, other in zip(pods.cluster.port.addresses, REMOTE, strict=True):
        assert reaches(pods.cluster.namespace, other)
        assert reaches(remote, own)
    for own, other in zip(pods.first.port.addresses, REMOTE, strict=True):
        assert not reaches(pods.first.namespace, other, timeout=0.5)
        assert not reaches(remote, own, timeout=0.5)
    node.run("nft", "add table ip services")
    node.run("nft", "add chain ip services to { type nat hook prerouting priority dstnat; }")
    node.run("nft", f"add rule ip services to ip daddr {SERVICES[0]} dnat to {REMOTE[0]}")
    with listening(remote):
        assert connects(pods.first.namespace, SERVICES[0])


def test_a_pod_that_forges_an_address_of_another_network_reaches_nobody_there(node: RoutedNode, pods: Pods) -> None:
    before = node.reconcile().drops.spoofing
    attacker, victim = pods.first, pods.other
    for address, gateway, target in zip(pods.cluster.port.addresses, GATEWAYS, victim.port.addresses, strict=True):
        flags = ("nodad",) if ":" in address else ()
        attacker.namespace.ip("address", "add", address, "dev", "lo", *flags)
        attacker.namespace.ip("route", "replace", target, "via", gateway, "dev", "eth0", "src", address)
        assert not reaches(attacker.namespace, target, timeout=0.5)
    assert node.reconcile().drops.spoofing > before


def test_a_port_that_moves_to_another_network_is_isolated_from_its_former_one(node: RoutedNode, pods: Pods) -> None:
    moved = pods.sibling._replace(port=pods.sibling.port._replace(network=SECOND))
    node.pods[node.pods.index(pods.sibling)] = moved
    node.reconcile()
    assert_reaches(moved, pods.first, is_allowed=False)
    assert_reaches(moved, pods.second, is_allowed=True)
