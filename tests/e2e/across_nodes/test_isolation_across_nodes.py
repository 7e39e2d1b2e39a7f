"""Isolation of networks with equal subnets, addresses and MACs on three nodes: who reaches whom, what nodes send."""

from collections.abc import Iterable, Iterator, Sequence
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
_HONEST = b"an honest frame of "
_HEADERS = 14 + 20 + 8  # bytes: Ethernet, IPv4, UDP


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


def test_no_forged_frame_leaves_its_node_and_honest_ones_stay_in_their_network(
    cluster: Cluster, pods: list[EqualPod]
) -> None:
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
                wires[pod.name].send(_honest(pod, other))
        arrived = {pod.name: _received(wires[pod.name], {each.name for each in _others(pod, pods)}) for pod in pods}
        found = list(tunnelled(capture.frames()))
    for pod in pods:
        assert [frame for frame in arrived[pod.name] if MARK in frame] == []
        assert _names(arrived[pod.name]) == {each.name for each in _others(pod, pods)}
    assert [each for each in found if MARK in each.frame or each.is_flooded] == []
    interfaces = cluster.interfaces()
    vnis = [(each.vni, interfaces[name][1]["vni"]) for each in found if (name := _name_in(each.frame))]
    assert len(vnis) >= len(pods) * 2
    assert [each for each, own in vnis if each != own] == []


def _honest(pod: EqualPod, other: EqualPod) -> bytes:
    """A frame that names its sender, which its addresses do not."""
    packet = frames.ipv4(pod.sender.ipv4, other.sender.ipv4, frames.udp(_HONEST + pod.name.encode()))
    return frames.ethernet(pod.sender.mac, other.sender.mac, frames.IPV4, packet)


def _received(wire: PacketSocket, names: set[str]) -> list[bytes]:
    """Frames that came in, until there is an honest one of each of these pods."""
    found: list[bytes] = []
    while not names <= _names(found):
        found += wire.received_until(_HONEST)
    return found


def _names(found: Iterable[bytes]) -> set[str]:
    """The senders of honest frames."""
    return {name for frame in found if (name := _name_in(frame))}


def _name_in(frame: bytes) -> str:
    """The sender of an honest frame; empty in others, such as the receiver's answer that quotes it."""
    return frame[_HEADERS:].removeprefix(_HONEST).decode() if frame[_HEADERS:].startswith(_HONEST) else ""


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
