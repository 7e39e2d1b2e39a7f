"""Tests of the filter's counters: what it drops is counted by reason, and read when the network is reconciled."""

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from cni_contrail.datapath.filter_rules import Drops
from tests.cni_contrail.datapath.conftest import Pod, VirtualNetwork
from tests.cni_contrail.datapath.test_filter_rules import received
from tests.support import frames
from tests.support.forged_frames import FLOODED, HONEST, SPOOFED, UNCOUNTED
from tests.support.frames import PacketSocket


@pytest.fixture
def wires(pair: tuple[Pod, Pod]) -> Iterator[tuple[PacketSocket, PacketSocket]]:
    """Packet sockets in both pods; IPv6 is off, so that their kernels send nothing by themselves."""
    with ExitStack() as stack:
        sockets = []
        for pod in pair:
            pod.namespace.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
            sockets.append(PacketSocket(pod.namespace, "eth0"))
            stack.callback(sockets[-1].close)
        yield sockets[0], sockets[1]


@pytest.fixture
def before(network: VirtualNetwork, wires: tuple[PacketSocket, PacketSocket]) -> Drops:
    """The counters before the test sends anything: pods with IPv6 have reported their multicast groups."""
    assert wires
    return network.reconcile().drops


@pytest.mark.parametrize("kind", SPOOFED)
def test_what_no_rule_accepts_is_counted_as_spoofing_of_its_port(
    kind: str, network: VirtualNetwork, pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket], before: Drops
) -> None:
    assert not received(pair, wires, SPOOFED[kind])
    ports = {**before.ports, "tap2": before.ports.get("tap2", 0) + 1}
    assert network.reconcile().drops == before._replace(spoofing=before.spoofing + 1, ports=ports)


@pytest.mark.parametrize("kind", FLOODED)
def test_what_is_not_forwarded_to_all_ports_is_counted_as_broadcast(
    kind: str, network: VirtualNetwork, pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket], before: Drops
) -> None:
    assert not received(pair, wires, FLOODED[kind])
    assert network.reconcile().drops == before._replace(broadcast=before.broadcast + 1)


@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_frame_is_not_counted(
    kind: str, network: VirtualNetwork, pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket], before: Drops
) -> None:
    assert received(pair, wires, HONEST[kind])
    assert network.reconcile().drops == before


def test_duplicate_address_detection_is_dropped_without_being_counted(
    network: VirtualNetwork, pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket], before: Drops
) -> None:
    assert not received(pair, wires, UNCOUNTED["IPv6 from the unspecified address"])
    assert network.reconcile().drops == before


def test_counters_keep_what_was_dropped_until_the_filter_is_replaced(
    network: VirtualNetwork, pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket], before: Drops
) -> None:
    for _ in range(3):
        received(pair, wires, SPOOFED["IPv4 from a free address"])
    pod = network.add_pod(4)
    assert network.reconcile().drops.spoofing == before.spoofing + 3
    network.pods.remove(pod)
    network.ip("link", "delete", pod.port.link)
    assert network.reconcile().drops.spoofing == before.spoofing + 3
    network.run("nft", "flush", "ruleset")
    network.reconcile()
    assert network.reconcile().drops == Drops(0, 0)


def test_a_port_without_elements_is_counted(network: VirtualNetwork, pair: tuple[Pod, Pod], before: Drops) -> None:
    mute = network.add_pod(4)
    network.pods.remove(mute)
    mute.namespace.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
    network.ip("link", "set", mute.port.link, "master", "br0")
    spoofed = network.reconcile().drops.spoofing
    assert "tap4" not in network.reconcile().drops.ports
    wire = PacketSocket(mute.namespace, "eth0")
    try:
        packet = frames.ipv4(mute.ipv4, pair[0].ipv4, frames.udp(b"payload"))
        wire.send(frames.ethernet(mute.mac, pair[0].mac, frames.IPV4, packet))
    finally:
        wire.close()
    drops = network.reconcile().drops
    assert (drops.spoofing, drops.ports["tap4"]) == (spoofed + 1, 1)
    network.ip("link", "delete", mute.port.link)
    network.reconcile()
    assert "elements" not in network.run("nft", "list", "set", "bridge", "contrail", "spoofed")
    assert network.reconcile().drops.spoofing == spoofed + 1


def test_counting_by_port_takes_little_memory(network: VirtualNetwork) -> None:
    """The kernel allocates hash buckets for all elements that a set may have, in each network: 2 MiB for 65,535."""
    (size,) = re.findall(r"size (\d+)", network.run("nft", "list", "set", "bridge", "contrail", "spoofed"))
    assert int(size) <= 4096
