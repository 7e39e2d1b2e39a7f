"""Isolation of networks with equal subnets, addresses and MACs on three nodes: who reaches whom, what nodes send."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.equal_networks import AROUND, NETWORKS, EqualPod, equal_networks
from tests.e2e.across_nodes.fabric_capture import tunnelled
from tests.support import frames
from tests.support.echo_many import answering
from tests.support.forged_frames import FORGED, MARK
from tests.support.frames import PacketSocket
from tests.support.network_capture import NetworkCapture

_CONCURRENT = 16
_LAST = b"the last frame"


@pytest.fixture(scope="module")
def pods(cluster: Cluster) -> Iterator[list[EqualPod]]:
    with equal_networks(cluster) as made:
        yield made


def asked(pods: Sequence[EqualPod], wanted: Sequence[set[str]]) -> list[set[str]]:
    """The addresses that answer each pod, of those that it is to ask."""
    with ThreadPoolExecutor(_CONCURRENT) as threads:
        return list(threads.map(answering, (pod.sandbox for pod in pods), wanted))


def test_pods_reach_each_other_in_each_network_and_in_no_other_across_nodes(
    cluster: Cluster, pods: list[EqualPod]
) -> None:
    unique = {address for pod in pods if pod.is_unique for address in pod.addresses}
    assert len(unique) == NETWORKS * 2
    own = {pod.name: _addresses_of_others(pod, pods) for pod in pods}
    assert {len(addresses) for addresses in own.values()} == {2 * 2}
    capture = NetworkCapture(cluster.fabric.path)
    try:
        answers = asked(pods, [own[pod.name] | (unique - pod.addresses) for pod in pods])
        found = list(tunnelled(capture.frames()))
    finally:
        capture.close()
    assert dict(zip([pod.name for pod in pods], answers, strict=True)) == own
    known = {address for node in cluster.nodes for address in node.addresses}
    assert {each.source for each in found} | {each.target for each in found} <= known
    assert {each.vni for each in found} == _vnis(cluster, pods)
    assert [each for each in found if each.is_flooded] == []


def test_pods_reach_each_other_at_index_0_across_nodes(pods: list[EqualPod]) -> None:
    everything = {address for pod in pods for address in pod.index_0}
    assert len(everything) == len(pods) * 2
    wanted = [everything - set(pod.index_0) for pod in pods]
    assert asked(pods, wanted) == wanted


def test_no_forged_frame_leaves_its_node(cluster: Cluster, pods: list[EqualPod]) -> None:
    with ExitStack() as stack:
        wires = {pod.name: PacketSocket(pod.sandbox, "eth1") for pod in pods}
        for wire in wires.values():
            stack.callback(wire.close)
        capture = NetworkCapture(cluster.fabric.path)
        stack.callback(capture.close)
        for pod in pods:
            for other in _others(pod, pods):
                for forge in FORGED.values():
                    wires[pod.name].send(forge(pod.sender, other.sender, AROUND))
                last = frames.ipv4(pod.sender.ipv4, other.sender.ipv4, frames.udp(_LAST))
                wires[pod.name].send(frames.ethernet(pod.sender.mac, other.sender.mac, frames.IPV4, last))
        for pod in pods:
            arrived = [frame for _ in _others(pod, pods) for frame in wires[pod.name].received_until(_LAST)]
            assert [frame for frame in arrived if MARK in frame] == []
        found = list(tunnelled(capture.frames()))
        assert sum(_LAST in each.frame for each in found) >= len(pods) * 2
        assert [each for each in found if MARK in each.frame or each.is_flooded] == []


def _others(pod: EqualPod, pods: Sequence[EqualPod]) -> list[EqualPod]:
    """The other pods of its network."""
    return [each for each in pods if each.network == pod.network and each != pod]


def _addresses_of_others(pod: EqualPod, pods: Sequence[EqualPod]) -> set[str]:
    """Addresses in the pod's network that other pods have."""
    return {address for each in _others(pod, pods) for address in each.addresses}


def _vnis(cluster: Cluster, pods: Sequence[EqualPod]) -> set[int]:
    """Numbers of the networks of the pods."""
    found = cluster.interfaces()
    return {found[pod.name][1]["vni"] for pod in pods}
