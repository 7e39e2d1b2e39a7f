"""Tunnel packets that somebody on the fabric makes up: from no node, for another network, with the source of a pod."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.across_nodes.attached_pods import Pod, all_reach_each_other, no_loss
from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.node import Node
from tests.support import frames
from tests.support.forged_frames import MARK
from tests.support.frames import PacketSocket
from tests.support.kernel_state import link
from tests.support.netns import Netns

_PORT = 4789
_STRANGER = ("192.0.2.99", "2001:db8::99")
_UNKNOWN_VNI = 0xABCDE
_LAST = b"the last packet"
_COUNT = 3
_MAC = "02:00:00:00:99:99"


@pytest.fixture
def stranger(cluster: Cluster) -> Iterator[PacketSocket]:
    """A link to the fabric."""
    host = Netns("stranger")
    cluster.fabric.ip("link", "add", "stranger", "up", "master", "fabric", "type", "veth",
                      "peer", "name", "eth0", "netns", host.name)  # fmt: skip
    host.ip("link", "set", "eth0", "up")
    wire = PacketSocket(host, "eth0")
    yield wire
    wire.close()
    host.delete()


@pytest.fixture
def victim(pods: list[Pod]) -> Iterator[PacketSocket]:
    """The interface of the second pod in the network."""
    all_reach_each_other(pods)
    wire = PacketSocket(pods[1].sandbox, "eth1")
    yield wire
    wire.close()


@pytest.mark.parametrize("family", [0, 1], ids=["IPv4", "IPv6"])
def test_tunnel_packets_of_who_is_no_node_are_dropped_and_counted(
    pods: list[Pod], stranger: PacketSocket, victim: PacketSocket, family: int
) -> None:
    sender, receiver, _ = pods
    node, vni = receiver.node, _vni(receiver.node)
    before = _dropped(node)
    for _ in range(_COUNT):
        stranger.send(_tunnelled(node, _STRANGER[family], vni, _packet(sender, receiver, MARK)))
    stranger.send(_tunnelled(node, sender.node.addresses[0], vni, _packet(sender, receiver, _LAST)))
    assert not any(MARK in frame for frame in victim.received_until(_LAST))
    assert _dropped(node) == before + _COUNT


def test_a_packet_of_a_node_in_another_vni_reaches_no_pod_of_this_network(
    cluster: Cluster, pods: list[Pod], stranger: PacketSocket, victim: PacketSocket
) -> None:
    sender, receiver, _ = pods
    node, vni = receiver.node, _vni(receiver.node)
    (index_0,) = {each["spec"]["vni"] for each in cluster.slices(node)} - {vni}
    for foreign in (_UNKNOWN_VNI, index_0, vni ^ 1):
        stranger.send(_tunnelled(node, sender.node.addresses[0], foreign, _packet(sender, receiver, MARK)))
    stranger.send(_tunnelled(node, sender.node.addresses[0], vni, _packet(sender, receiver, _LAST)))
    assert not any(MARK in frame for frame in victim.received_until(_LAST))


def test_a_packet_of_a_node_with_the_source_of_another_nodes_pod_changes_no_path(
    pods: list[Pod], stranger: PacketSocket, victim: PacketSocket
) -> None:
    sender, receiver, elsewhere = pods
    node, vni = receiver.node, _vni(receiver.node)
    before = _entries(node, vni)
    forged = [
        _tunnelled(node, elsewhere.node.addresses[0], vni, _packet(claimed, receiver, _LAST))
        for claimed in (receiver, sender)
    ]
    for packet in forged:
        stranger.send(packet)
    victim.received_until(_LAST)
    with no_loss(pods):
        for packet in forged * _COUNT:
            stranger.send(packet)
            all_reach_each_other(pods)
    assert _entries(node, vni) == before


def _vni(node: Node) -> int:
    """Number of the network, the only one of the node."""
    (vni,) = node.networks.namespaces.existing()
    return vni


def _entries(node: Node, vni: int) -> list[str]:
    """Forwarding entries and neighbours of a network, without how lately they were used."""
    commands = (("bridge", "fdb", "show"), ("ip", "neighbour", "show", "nud", "permanent"))
    return sorted(line for command in commands for line in node.networks.run(vni, *command).splitlines())


def _dropped(node: Node) -> int:
    """Tunnel packets that the filter of a node has dropped."""
    listed = json.loads(node.namespace.run("nft", "-j", "list", "table", "inet", "contrail-tunnels").stdout)["nftables"]
    return sum(part["counter"]["packets"] for part in _parts(listed) if "counter" in part)


def _parts(listed: list[dict[str, Any]]) -> Iterator[dict[str, dict[str, int]]]:
    """Yields the expressions of all rules."""
    for each in listed:
        yield from each.get("rule", {}).get("expr", [])


def _packet(sender: Pod, receiver: Pod, payload: bytes) -> bytes:
    """A frame from a pod to another one."""
    source, target = (link(pod.sandbox, "eth1")["address"] for pod in (sender, receiver))
    body = frames.ipv4(sender.addresses[0], receiver.addresses[0], frames.udp(payload))
    return frames.ethernet(source, target, frames.IPV4, body)


def _tunnelled(node: Node, source: str, vni: int, frame: bytes) -> bytes:
    """A frame to a node: a tunnel packet from an address."""
    body = struct.pack("!II", 0x08000000, vni << 8) + frame
    datagram = struct.pack("!HHHH", 40000, _PORT, 8 + len(body), 0) + body
    target = next(each for each in node.addresses if (":" in each) == (":" in source))
    if ":" in source:
        datagram = frames.with_udp_checksum(source, target, datagram)
        return frames.ethernet(_MAC, node.mac, frames.IPV6, frames.ipv6(source, target, frames.UDP, datagram))
    return frames.ethernet(_MAC, node.mac, frames.IPV4, frames.ipv4(source, target, datagram))
