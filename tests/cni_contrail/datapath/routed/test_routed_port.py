"""Tests of connecting a routed port: who reaches whom, and what stays mute."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cni_contrail.datapath.desired import PENDING, Masquerade
from cni_contrail.datapath.routed_port import connect_routed
from cni_contrail.link.check import check_interfaces
from cni_contrail.link.errors import LinkError, SysctlError
from cni_contrail.link.netns import open_netns
from tests.cni_contrail.datapath.routed.conftest import (
    GATEWAYS,
    NODE_OUTSIDE,
    OUTSIDE,
    SUBNETS,
    RoutedNode,
    RoutedPod,
)
from tests.support.echo import reaches
from tests.support.echo_stream import EchoStream

Pair = tuple[RoutedPod, RoutedPod]


def test_pods_of_one_subnet_reach_each_other_in_both_families(pair: Pair) -> None:
    first, second = pair
    assert reaches(first.namespace, second.ipv4)
    assert reaches(second.namespace, first.ipv4)
    assert reaches(first.namespace, second.ipv6)
    assert reaches(second.namespace, first.ipv6)


def test_the_node_reaches_pods_and_pods_reach_the_node(node: RoutedNode, pair: Pair) -> None:
    for address in pair[0].port.addresses:
        assert reaches(node.namespace, address)
    for address in (*GATEWAYS, *NODE_OUTSIDE):
        assert reaches(pair[0].namespace, address)


def test_pods_reach_the_outside_with_the_address_of_the_node(node: RoutedNode, pair: Pair) -> None:
    assert node.outside.ip("route", "get", NODE_OUTSIDE[0])
    for address in OUTSIDE:
        assert reaches(pair[0].namespace, address)


def test_pods_keep_their_address_towards_excluded_networks(node: RoutedNode) -> None:
    node.masquerade = Masquerade(("192.0.2.0/24", "2001:db8::/32"))
    pod = node.add_pod(2)
    node.connect(pod)
    for address in OUTSIDE:
        assert not reaches(pod.namespace, address, timeout=1)  # the answer has no way back
    node.outside.ip("route", "add", "10.8.0.0/24", "via", NODE_OUTSIDE[0])
    node.outside.ip("route", "add", "fd08::/64", "via", NODE_OUTSIDE[1])
    for address in OUTSIDE:
        assert reaches(pod.namespace, address)


def test_pods_keep_their_address_without_masquerade(node: RoutedNode) -> None:
    node.masquerade = None
    pod = node.add_pod(2)
    node.connect(pod)
    assert not reaches(pod.namespace, OUTSIDE[0], timeout=1)
    node.outside.ip("route", "add", "10.8.0.0/24", "via", NODE_OUTSIDE[0])
    assert reaches(pod.namespace, OUTSIDE[0])


@pytest.mark.parametrize("family", [0, 1])
def test_packets_of_the_first_port_wait_for_the_masquerade(node: RoutedNode, family: int) -> None:
    """A connection keeps the address with which its first packet left, so none may leave with the pod's."""
    node.run("nft", "add table inet others; add chain inet others forward { type filter hook forward priority 0; }")
    node.run("nft", "add rule inet others forward ct state invalid drop")  # tracks connections, as kube-proxy does
    pod = node.add_pod(2)
    node.masquerade = PENDING
    node.connect(pod)
    stream = EchoStream(pod.namespace, OUTSIDE[family])
    with stream.running():
        assert reaches(pod.namespace, GATEWAYS[family])
        assert not reaches(pod.namespace, OUTSIDE[family], timeout=0.5)
        sent = stream.sent
        node.masquerade = Masquerade(SUBNETS)
        assert node.reconcile().changes == 1
        assert reaches(pod.namespace, OUTSIDE[family])
        assert reaches(pod.namespace, OUTSIDE[family])
    assert sent > 0
    assert stream.lost() < stream.sent


def test_a_pod_whose_masquerade_is_pending_is_reached_from_outside(node: RoutedNode) -> None:
    node.outside.ip("route", "add", "10.8.0.0/24", "via", NODE_OUTSIDE[0])
    node.masquerade = PENDING
    first, second = node.add_pod(2), node.add_pod(3)
    node.connect(first)
    node.connect(second)
    assert reaches(node.outside, first.ipv4)
    assert reaches(node.namespace, first.ipv4)
    assert reaches(first.namespace, second.ipv4)


def test_a_pod_reaches_itself_and_others_by_a_service_address(node: RoutedNode, pair: Pair) -> None:
    first, second = pair
    node.run("nft", "add table ip services")
    node.run("nft", "add chain ip services to { type nat hook prerouting priority dstnat; }")
    node.run("nft", "add chain ip services from { type nat hook postrouting priority srcnat - 1; }")
    node.run("nft", f"add rule ip services to ip daddr 10.96.0.1 dnat to {first.ipv4}")
    hairpin = f"ip saddr {first.ipv4} ip daddr {first.ipv4} masquerade"  # as kube-proxy's mark says
    node.run("nft", f"add rule ip services from {hairpin}")
    assert reaches(first.namespace, "10.96.0.1")
    assert reaches(second.namespace, "10.96.0.1")


@pytest.mark.parametrize("value", ["0", "1", "3"])
def test_pods_find_their_gateway_whatever_the_node_answers_elsewhere(node: RoutedNode, pair: Pair, value: str) -> None:
    for key in ("all", "uplink"):
        node.run("sysctl", "-qw", f"net.ipv4.conf.{key}.arp_ignore={value}", f"net.ipv4.conf.{key}.arp_announce=2")
    pair[0].namespace.ip("neighbour", "flush", "all")
    assert reaches(pair[0].namespace, pair[1].ipv4)


def test_the_host_end_answers_for_no_address_but_the_gateway(node: RoutedNode, pair: Pair) -> None:
    pod = pair[0].namespace
    node.run("ip", "route", "add", "default", "via", OUTSIDE[0])
    for address in (pair[1].ipv4, "10.8.0.99", "198.51.100.1", NODE_OUTSIDE[0]):
        pod.ip("route", "replace", f"{address}/32", "dev", "eth0")
        assert not reaches(pod, address, timeout=0.5)


def test_check_accepts_a_connected_pod(node: RoutedNode, pair: Pair) -> None:
    for pod in pair:
        netns = open_netns(pod.namespace.path)
        with node.namespace.inside():
            assert check_interfaces(netns, [pod.plan]) == []
        os.close(netns)


def test_reverse_path_filtering_is_strict_on_the_host_end(node: RoutedNode, pair: Pair) -> None:
    assert pair
    assert node.run("sysctl", "-n", "net.ipv4.conf.tap2.rp_filter").strip() == "1"


def test_a_connected_port_receives_solicitations_for_its_gateway_at_once(node: RoutedNode) -> None:
    """Also if the kernel worker that makes it receive them is late, as other links are created."""
    solicited_node = "ff0200000000000000000001ff000001"
    ended = threading.Event()

    def keep_the_kernel_busy() -> None:
        while not ended.is_set():
            node.outside.ip("link", "add", "busy", "type", "veth", "peer", "name", "peer")
            node.outside.ip("link", "delete", "busy")

    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(keep_the_kernel_busy)
        try:
            for number in range(2, 22):
                pod = node.add_pod(number)
                with node.namespace.inside(), open("/proc/thread-self/net/igmp6", encoding="ascii") as file:
                    connect_routed(pod.port, node.masquerade)
                    groups = [line.split() for line in file]
                assert solicited_node in [group for _, link, group, *_ in groups if link == f"tap{number}"]
        finally:
            ended.set()
        busy.result(timeout=30)


def test_connecting_again_changes_nothing(node: RoutedNode, pair: Pair) -> None:
    before = node.objects()
    node.connect(pair[0])
    assert node.objects() == before


def test_an_unconnected_port_is_mute(node: RoutedNode, pair: Pair) -> None:
    assert pair
    stranger = node.add_pod(4)
    for address in (*GATEWAYS, *pair[0].port.addresses):
        assert not reaches(stranger.namespace, address, timeout=0.5)


def test_a_port_without_a_link_is_an_error(node: RoutedNode, pair: Pair) -> None:
    absent = pair[0]._replace(port=pair[0].port._replace(link="tap9"))
    with pytest.raises(LinkError, match="link tap9 not found"):
        node.connect(absent)


def test_an_address_with_a_route_of_another_program_leaves_the_port_mute(node: RoutedNode) -> None:
    pod = node.add_pod(2)
    node.run("ip", "route", "add", f"{pod.ipv4}/32", "dev", "uplink")
    with pytest.raises(LinkError, match=r"tap2: address 10\.8\.0\.2 has a route of another program"):
        node.connect(pod)
    for address in GATEWAYS:
        assert not reaches(pod.namespace, address, timeout=0.5)
    assert "10.8.0.2 dev uplink" in node.run("ip", "route")


def test_an_invalid_address_leaves_the_port_mute(node: RoutedNode) -> None:
    pod = node.add_pod(2)
    wrong = pod._replace(port=pod.port._replace(addresses=("10.8.0.2", "nonsense")))
    with pytest.raises(LinkError, match="'nonsense' is not an IP address"):
        node.connect(wrong)
    assert not reaches(pod.namespace, GATEWAYS[0], timeout=0.5)


def test_a_setting_that_cannot_be_written_leaves_the_port_mute(
    node: RoutedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = node.add_pod(2)

    def refuse(path: str, value: bytes) -> None:
        if "disable_ipv6" in path:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("cni_contrail.datapath.kernel_settings.ensure_setting", refuse)
    with pytest.raises(SysctlError, match=r"net\.ipv6\.conf\.tap2\.disable_ipv6 to 0: .*Permission denied"):
        node.connect(pod)
    for address in GATEWAYS:
        assert not reaches(pod.namespace, address, timeout=0.5)


def test_a_pod_takes_over_the_address_of_one_whose_link_still_exists(node: RoutedNode, pair: Pair) -> None:
    first, second = pair
    successor = node.add_pod(5)
    taken = successor.port._replace(addresses=second.port.addresses)
    successor.namespace.ip("address", "add", f"{second.ipv4}/24", "dev", "eth0")
    node.connect(successor._replace(port=taken))
    second.namespace.ip("link", "set", "eth0", "down")
    assert reaches(first.namespace, second.ipv4)
