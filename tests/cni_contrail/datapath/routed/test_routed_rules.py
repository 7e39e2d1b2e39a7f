"""Tests of the filter of routed ports: what a pod may send, and what of it is counted."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from cni_contrail.datapath import routed_rules
from cni_contrail.datapath.desired import GATEWAY_MAC, Masquerade
from cni_contrail.datapath.missing_modules import MissingModuleError
from cni_contrail.link.errors import LinkError
from tests.cni_contrail.datapath.routed.conftest import GATEWAYS, NODE_OUTSIDE, OUTSIDE, RoutedNode, RoutedPod
from tests.support import frames
from tests.support.echo import reaches
from tests.support.frames import PacketSocket

Pair = tuple[RoutedPod, RoutedPod]
Forge = Callable[[RoutedPod, RoutedPod], bytes]
FREE_IPV4, FREE_IPV6 = "10.8.0.66", "fd08::66"
OWN_LINK_LOCAL, OTHER_LINK_LOCAL = "fe80::ff:fe00:802", "fe80::ff:fe00:803"
MARK, LAST = b"a marked payload", b"the last frame"


def _ipv4(to: RoutedPod, source: str) -> bytes:
    return frames.ipv4(source, to.ipv4, frames.udp(MARK))


def _ipv6(to: RoutedPod, source: str) -> bytes:
    return frames.ipv6(source, to.ipv6, frames.UDP, frames.udp(MARK))


FORGED: dict[str, Forge] = {
    "IPv4 from a free address": lambda _, to: _ipv4(to, FREE_IPV4),
    "IPv4 from the gateway": lambda _, to: _ipv4(to, GATEWAYS[0]),
    "IPv4 from the node": lambda _, to: _ipv4(to, NODE_OUTSIDE[0]),
    "IPv4 from outside": lambda _, to: _ipv4(to, OUTSIDE[0]),
    "IPv4 from the receiver": lambda _, to: _ipv4(to, to.ipv4),
    "IPv4 from the unspecified address": lambda _, to: _ipv4(to, "0.0.0.0"),
    "IPv4 from loopback": lambda _, to: _ipv4(to, "127.0.0.1"),
    "IPv6 from a free address": lambda _, to: _ipv6(to, FREE_IPV6),
    "IPv6 from the gateway": lambda _, to: _ipv6(to, GATEWAYS[1]),
    "IPv6 from the node": lambda _, to: _ipv6(to, NODE_OUTSIDE[1]),
    "IPv6 from outside": lambda _, to: _ipv6(to, OUTSIDE[1]),
    "IPv6 from the receiver": lambda _, to: _ipv6(to, to.ipv6),
    "IPv6 from another's link-local address": lambda _, to: _ipv6(to, OTHER_LINK_LOCAL),
}


def _frame(pod: RoutedPod, packet: bytes) -> bytes:
    kind = frames.IPV4 if packet[0] >> 4 == 4 else frames.IPV6
    return frames.ethernet(pod.port.mac, GATEWAY_MAC, kind, packet)


@pytest.fixture
def wires(node: RoutedNode, pair: Pair) -> Iterator[tuple[PacketSocket, PacketSocket]]:
    """Packet sockets in both pods, where only the filter keeps forged packets back."""
    node.run("sysctl", "-qw", "net.ipv4.conf.tap2.rp_filter=0")
    with ExitStack() as stack:
        sockets = [PacketSocket(pod.namespace, "eth0") for pod in pair]
        for each in sockets:
            stack.callback(each.close)
        yield sockets[0], sockets[1]


def received(pair: Pair, wires: tuple[PacketSocket, PacketSocket], packet: bytes) -> bool:
    """Whether the second pod gets a packet that the first one sends before an honest one."""
    wires[0].send(_frame(pair[0], packet))
    wires[0].send(_frame(pair[0], frames.ipv4(pair[0].ipv4, pair[1].ipv4, frames.udp(LAST))))
    return any(MARK in each for each in wires[1].received_until(LAST))


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_packet_is_dropped_and_counted(
    kind: str, node: RoutedNode, pair: Pair, wires: tuple[PacketSocket, PacketSocket]
) -> None:
    before = node.reconcile().drops.spoofing
    node.run("sysctl", "-qw", "net.ipv4.conf.tap2.rp_filter=0")
    assert not received(pair, wires, FORGED[kind](*pair))
    assert node.reconcile().drops.spoofing == before + 1


@pytest.mark.parametrize("kind", ["IPv4 from a free address", "IPv6 from a free address"])
def test_a_forged_packet_passes_without_the_filter(
    kind: str, node: RoutedNode, pair: Pair, wires: tuple[PacketSocket, PacketSocket]
) -> None:
    node.run("nft", "flush", "ruleset")
    assert received(pair, wires, FORGED[kind](*pair))


def test_honest_packets_pass(pair: Pair, wires: tuple[PacketSocket, PacketSocket]) -> None:
    for packet in (_ipv4(pair[1], pair[0].ipv4), _ipv6(pair[1], pair[0].ipv6)):
        assert received(pair, wires, packet)


def test_neighbour_solicitations_from_others_leave_no_trace(
    node: RoutedNode, pair: Pair, wires: tuple[PacketSocket, PacketSocket]
) -> None:
    for source in (FREE_IPV6, OTHER_LINK_LOCAL, OWN_LINK_LOCAL):
        body = frames.neighbour_message(frames.SOLICITATION, source, GATEWAYS[1], GATEWAYS[1], pair[0].port.mac)
        packet = frames.ipv6(source, GATEWAYS[1], frames.ICMPV6, body)
        wires[0].send(_frame(pair[0], packet))
    assert reaches(pair[0].namespace, GATEWAYS[1])
    known = node.run("ip", "-6", "neighbour", "show", "dev", "tap2")
    assert OWN_LINK_LOCAL in known
    assert FREE_IPV6 not in known
    assert OTHER_LINK_LOCAL not in known


def test_arp_requests_from_others_leave_no_trace_where_the_node_filters_loosely(
    node: RoutedNode, pair: Pair, wires: tuple[PacketSocket, PacketSocket]
) -> None:
    node.run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=2")  # of both values the higher one applies
    pod = pair[0]
    for sender in (FREE_IPV4, pair[1].ipv4, OUTSIDE[0]):
        message = frames.arp(frames.REQUEST, pod.port.mac, sender, "00:00:00:00:00:00", GATEWAYS[0])
        wires[0].send(frames.ethernet(pod.port.mac, frames.BROADCAST, frames.ARP, message))
    pod.namespace.ip("neighbour", "flush", "all")
    assert reaches(pod.namespace, GATEWAYS[0])
    assert node.run("ip", "-4", "neighbour", "show", "dev", "tap2").count("lladdr") == 1


def test_duplicate_address_detection_of_a_pod_is_not_counted(
    node: RoutedNode, pair: Pair, wires: tuple[PacketSocket, PacketSocket]
) -> None:
    before = node.reconcile().drops.spoofing
    assert not received(pair, wires, _ipv6(pair[1], "::"))
    assert node.reconcile().drops.spoofing == before


def test_a_pod_does_not_reach_loopback_addresses_of_the_node(
    node: RoutedNode, pair: Pair, wires: tuple[PacketSocket, PacketSocket]
) -> None:
    node.run("sysctl", "-qw", "net.ipv4.conf.tap2.route_localnet=1")  # as the plugin `portmap` does
    with node.namespace.inside():
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with server:
        server.bind(("127.0.0.1", 4000))
        server.setblocking(False)
        wires[0].send(_frame(pair[0], frames.ipv4(pair[0].ipv4, "127.0.0.1", frames.udp(MARK))))
        assert reaches(pair[0].namespace, GATEWAYS[0])  # which comes later on the same way
        with pytest.raises(BlockingIOError):
            server.recv(100)


def test_packets_of_other_links_are_not_filtered(node: RoutedNode, pair: Pair) -> None:
    node.outside.ip("route", "add", "10.8.0.0/24", "via", NODE_OUTSIDE[0])
    node.outside.ip("address", "add", "10.8.0.66/32", "dev", "lo")
    node.run("ip", "route", "add", "10.8.0.66", "via", OUTSIDE[0])
    pair[0].namespace.ip("route", "replace", "10.8.0.66", "via", GATEWAYS[0])
    node.masquerade = None
    node.reconcile()
    assert reaches(pair[0].namespace, "10.8.0.66")
    assert reaches(node.outside, NODE_OUTSIDE[0])


def test_nft_lists_the_filter_with_the_names_of_ports(node: RoutedNode, pair: Pair) -> None:
    listed = node.run("nft", "list", "table", "inet", "contrail")
    assert "type iface_index . ipv4_addr" in listed
    assert '"tap2", "tap3"' in listed or '"tap3", "tap2"' in listed
    assert f'"tap2" . {pair[0].ipv4}' in listed
    assert f'"tap3" . {OTHER_LINK_LOCAL}' in listed
    assert "hook prerouting priority raw; policy accept;" in listed
    assert "hook postrouting priority srcnat; policy accept;" in listed
    assert 'ip daddr 10.8.0.0/24 accept comment "accept to 10.8.0.0/24 ' in listed


@pytest.mark.parametrize("network", ["10.0.0.0/33", "nonsense", "10.0.0.0"])
def test_an_invalid_excluded_network_is_an_error(node: RoutedNode, network: str) -> None:
    node.add_pod(2)
    node.masquerade = Masquerade((network,))
    with pytest.raises(LinkError, match=r"masquerade: .*not a"):
        node.reconcile()


@pytest.mark.parametrize(
    ("present", "absent", "module"),
    [(b"nat\0", b"gnu\0", "nft_chain_nat"), (b"masq\0", b"gnus\0", "nft_masq")],
)
def test_a_missing_kernel_module_is_named(
    present: bytes, absent: bytes, module: str, node: RoutedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel answers for a name that it does not know as for one whose module it cannot load."""
    pod = node.add_pod(2)
    create = routed_rules.create_table

    def create_with_another_name(masquerade: Masquerade | None) -> list[object]:
        return [each._replace(body=each.body.replace(present, absent)) for each in create(masquerade)]

    monkeypatch.setattr(routed_rules, "create_table", create_with_another_name)
    for call in (node.reconcile, lambda: node.connect(pod)):
        with pytest.raises(MissingModuleError, match=f"kernel module {module} is missing: "):
            call()
    assert node.run("nft", "list", "ruleset") == ""
    assert not reaches(pod.namespace, GATEWAYS[0], timeout=0.5)
