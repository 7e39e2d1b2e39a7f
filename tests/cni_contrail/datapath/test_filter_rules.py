"""Tests of the filter: what a pod may send, and what another pod gets of it."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from cni_contrail.datapath.entries import link_local_address
from tests.cni_contrail.datapath.conftest import GATEWAYS, Pod, VirtualNetwork
from tests.support import frames
from tests.support.forged_frames import FORGED, HONEST, MARK, Forge, Sender, Surroundings
from tests.support.frames import PacketSocket

AROUND = Surroundings(gateways=(GATEWAYS[0].address, GATEWAYS[1].address), free=("10.7.0.66", "fd07::66"))
LAST = b"the last frame"


@pytest.fixture
def wires(pair: tuple[Pod, Pod]) -> Iterator[tuple[PacketSocket, PacketSocket]]:
    """Packet sockets in both pods."""
    with ExitStack() as stack:
        sockets = [PacketSocket(pod.namespace, "eth0") for pod in pair]
        for each in sockets:
            stack.callback(each.close)
        yield sockets[0], sockets[1]


def received(pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket], forge: Forge) -> bool:
    """Whether the second pod gets a frame that the first one sends before an honest one."""
    first, second = (Sender(pod.mac, pod.ipv4, pod.ipv6) for pod in pair)
    wires[0].send(forge(first, second, AROUND))
    packet = frames.ipv4(pair[0].ipv4, pair[1].ipv4, frames.udp(LAST))
    wires[0].send(frames.ethernet(pair[0].mac, pair[1].mac, frames.IPV4, packet))
    return any(MARK in each for each in wires[1].received_until(LAST))


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_frame_is_dropped(kind: str, pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket]) -> None:
    assert not received(pair, wires, FORGED[kind])


@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_frame_passes(kind: str, pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket]) -> None:
    assert received(pair, wires, HONEST[kind])


@pytest.mark.parametrize("kind", ["broadcast", "multicast", "another protocol", "router advertisement"])
def test_a_forged_frame_passes_without_the_filter(
    kind: str, network: VirtualNetwork, pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket]
) -> None:
    network.run("nft", "flush", "ruleset")
    assert received(pair, wires, FORGED[kind])


def test_nft_lists_the_filter_with_the_names_of_ports(network: VirtualNetwork, pair: tuple[Pod, Pod]) -> None:
    listed = network.run("nft", "list", "table", "bridge", "contrail")
    assert "type iface_index . ether_addr . ipv4_addr" in listed
    assert f'"tap2" . {pair[0].mac} . {pair[0].ipv4}' in listed
    assert f'"tap3" . {pair[1].mac} . {link_local_address(pair[1].mac)}' in listed
    assert "hook prerouting priority filter; policy drop;" in listed
