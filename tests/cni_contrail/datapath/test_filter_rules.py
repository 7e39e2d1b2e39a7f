"""Tests of the filter: what a pod may send, and what another pod gets of it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.cni_contrail.datapath.conftest import GATEWAYS, Pod, VirtualNetwork
from tests.support import frames
from tests.support.frames import PacketSocket

OTHER_MAC, FREE_IPV4, FREE_IPV6 = "02:00:00:00:00:66", "10.7.0.66", "fd07::66"
LINK_LOCAL = {2: "fe80::ff:fe00:2", 3: "fe80::ff:fe00:3"}
MARK = b"a marked payload"
LAST = b"the last frame"

Forge = Callable[[Pod, Pod], bytes]
"""Builds a frame that the first pod sends, and that the second must not get, or must."""


def _unicast_ipv4(pod: Pod, to: Pod, *, mac: str = "", source: str = "") -> bytes:
    packet = frames.ipv4(source or pod.ipv4, to.ipv4, frames.udp(MARK))
    return frames.ethernet(mac or pod.mac, to.mac, frames.IPV4, packet)


def _unicast_ipv6(pod: Pod, to: Pod, *, mac: str = "", source: str = "") -> bytes:
    packet = frames.ipv6(source or pod.ipv6, to.ipv6, frames.UDP, frames.udp(MARK))
    return frames.ethernet(mac or pod.mac, to.mac, frames.IPV6, packet)


def _arp(pod: Pod, to: Pod, operation: int, *, sender: str = "", mac: str = "", frame_mac: str = "") -> bytes:
    message = frames.arp(operation, mac or pod.mac, sender or pod.ipv4, to.mac, to.ipv4)
    return frames.ethernet(frame_mac or pod.mac, to.mac, frames.ARP, message + MARK)


def _neighbour(
    pod: Pod, to: Pod, kind: int, *, target: str = "", source: str = "", mac: str = "", options: bool = False
) -> bytes:
    body = frames.neighbour_message(kind, source or pod.ipv6, to.ipv6, target or pod.ipv6, mac or pod.mac) + MARK
    protocol = frames.ICMPV6
    if options:
        protocol, body = 60, frames.behind_destination_options(frames.ICMPV6, body)
    return frames.ethernet(
        mac or pod.mac, to.mac, frames.IPV6, frames.ipv6(source or pod.ipv6, to.ipv6, protocol, body)
    )


FORGED: dict[str, Forge] = {
    "IPv4 from a free address": lambda pod, to: _unicast_ipv4(pod, to, source=FREE_IPV4),
    "IPv4 from the gateway": lambda pod, to: _unicast_ipv4(pod, to, source=GATEWAYS[0].address),
    "IPv4 from the receiver's own address": lambda pod, to: _unicast_ipv4(pod, to, source=to.ipv4),
    "IPv4 with another MAC": lambda pod, to: _unicast_ipv4(pod, to, mac=OTHER_MAC),
    "IPv4 with the gateway's MAC": lambda pod, to: _unicast_ipv4(pod, to, mac="00:00:5e:00:01:00"),
    "IPv4 in a VLAN": lambda pod, to: frames.tagged(_unicast_ipv4(pod, to), 7),
    "IPv6 from a free address": lambda pod, to: _unicast_ipv6(pod, to, source=FREE_IPV6),
    "IPv6 from the gateway": lambda pod, to: _unicast_ipv6(pod, to, source=GATEWAYS[1].address),
    "IPv6 from another's link-local address": lambda pod, to: _unicast_ipv6(pod, to, source=LINK_LOCAL[3]),
    "IPv6 from the unspecified address": lambda pod, to: _unicast_ipv6(pod, to, source="::"),
    "IPv6 with another MAC": lambda pod, to: _unicast_ipv6(pod, to, mac=OTHER_MAC),
    "ARP reply for the gateway": lambda pod, to: _arp(pod, to, frames.REPLY, sender=GATEWAYS[0].address),
    "ARP request from a free address": lambda pod, to: _arp(pod, to, frames.REQUEST, sender=FREE_IPV4),
    "ARP reply with another MAC inside": lambda pod, to: _arp(pod, to, frames.REPLY, mac=OTHER_MAC),
    "ARP reply with another MAC outside": lambda pod, to: _arp(pod, to, frames.REPLY, frame_mac=OTHER_MAC),
    "advertisement for the gateway": lambda pod, to: _neighbour(
        pod, to, frames.ADVERTISEMENT, target=GATEWAYS[1].address
    ),
    "advertisement for a free address": lambda pod, to: _neighbour(pod, to, frames.ADVERTISEMENT, target=FREE_IPV6),
    "advertisement for another behind an extension header": lambda pod, to: _neighbour(
        pod, to, frames.ADVERTISEMENT, target=FREE_IPV6, options=True
    ),
    "solicitation from another": lambda pod, to: _neighbour(pod, to, frames.SOLICITATION, source=FREE_IPV6),
    "router advertisement": lambda pod, to: _neighbour(pod, to, frames.ROUTER_ADVERTISEMENT),
    "redirect": lambda pod, to: _neighbour(pod, to, frames.REDIRECT),
    "broadcast": lambda pod, to: frames.ethernet(
        pod.mac, frames.BROADCAST, frames.IPV4, frames.ipv4(pod.ipv4, "255.255.255.255", frames.udp(MARK))
    ),
    "multicast": lambda pod, to: frames.ethernet(
        pod.mac, frames.ALL_NODES, frames.IPV6, frames.ipv6(pod.ipv6, "ff02::1", frames.UDP, frames.udp(MARK))
    ),
    "another protocol": lambda pod, to: frames.ethernet(pod.mac, to.mac, 0x88B5, MARK),
}

ALLOWED: dict[str, Forge] = {
    "IPv4": _unicast_ipv4,
    "IPv6": _unicast_ipv6,
    "IPv6 from the link-local address": lambda pod, to: _unicast_ipv6(pod, to, source=LINK_LOCAL[2]),
    "ARP request": lambda pod, to: _arp(pod, to, frames.REQUEST),
    "ARP reply": lambda pod, to: _arp(pod, to, frames.REPLY),
    "ARP announcement": lambda pod, to: frames.ethernet(
        pod.mac,
        frames.BROADCAST,
        frames.ARP,
        frames.arp(frames.REQUEST, pod.mac, pod.ipv4, "00:00:00:00:00:00", pod.ipv4) + MARK,
    ),
    "advertisement": lambda pod, to: _neighbour(pod, to, frames.ADVERTISEMENT),
    "advertisement of the link-local address": lambda pod, to: _neighbour(
        pod, to, frames.ADVERTISEMENT, target=LINK_LOCAL[2]
    ),
    "solicitation": lambda pod, to: _neighbour(pod, to, frames.SOLICITATION, target=to.ipv6),
}


@pytest.fixture
def wires(pair: tuple[Pod, Pod]) -> Iterator[tuple[PacketSocket, PacketSocket]]:
    """Packet sockets in both pods."""
    with ExitStack() as stack:
        sockets = [PacketSocket(pod.namespace, "eth0") for pod in pair]
        for each in sockets:
            stack.callback(each.close)
        yield sockets[0], sockets[1]


def received(pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket], frame: bytes) -> bool:
    """Whether the second pod gets a frame that the first one sends before an allowed one."""
    wires[0].send(frame)
    packet = frames.ipv4(pair[0].ipv4, pair[1].ipv4, frames.udp(LAST))
    wires[0].send(frames.ethernet(pair[0].mac, pair[1].mac, frames.IPV4, packet))
    return any(MARK in each for each in wires[1].received_until(LAST))


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_frame_is_dropped(kind: str, pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket]) -> None:
    assert not received(pair, wires, FORGED[kind](*pair))


@pytest.mark.parametrize("kind", ALLOWED)
def test_an_honest_frame_passes(kind: str, pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket]) -> None:
    assert received(pair, wires, ALLOWED[kind](*pair))


@pytest.mark.parametrize("kind", ["broadcast", "multicast", "another protocol", "router advertisement"])
def test_a_forged_frame_passes_without_the_filter(
    kind: str, network: VirtualNetwork, pair: tuple[Pod, Pod], wires: tuple[PacketSocket, PacketSocket]
) -> None:
    network.run("nft", "flush", "ruleset")
    assert received(pair, wires, FORGED[kind](*pair))


def test_nft_lists_the_filter_with_the_names_of_ports(network: VirtualNetwork, pair: tuple[Pod, Pod]) -> None:
    listed = network.run("nft", "list", "table", "bridge", "contrail")
    assert "type iface_index . ether_addr . ipv4_addr" in listed
    assert f'"tap2" . {pair[0].mac} . {pair[0].ipv4}' in listed
    assert f'"tap3" . {pair[1].mac} . {LINK_LOCAL[3]}' in listed
    assert "hook prerouting priority filter; policy drop;" in listed
