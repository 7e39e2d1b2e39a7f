"""Connections of index 0 that the kernel knows, or does not: neither opens a way that the filter should close."""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.cni_contrail.datapath.routed.conftest import OUTSIDE, RoutedNode, RoutedPod
from tests.support import frames
from tests.support.echo import reaches
from tests.support.frames import PacketSocket
from tests.support.netns import Netns

FIRST, SECOND = 7, 9
PORT = 4444
MARK, LAST = b"a marked payload", b"the last packet"
ECHO_REPLY, UNREACHABLE, PORT_CODE = 0, 3, 3
ECHO_REPLY_V6, UNREACHABLE_V6, PORT_CODE_V6 = 129, 1, 4

Raw = tuple[int, int, int]
"""Family and protocol of a raw socket, and which of a pod's addresses it has."""

FAMILIES = {
    "IPv4": (socket.AF_INET, socket.IPPROTO_ICMP, 0),
    "IPv6": (socket.AF_INET6, socket.IPPROTO_ICMPV6, 1),
}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Raw:
    return FAMILIES[request.param]


@contextlib.contextmanager
def datagrams(namespace: Netns, family: int) -> Iterator[socket.socket]:
    """A UDP socket in the namespace."""
    with namespace.inside():
        opened = socket.socket(family, socket.SOCK_DGRAM)
    with opened:
        opened.bind(("", PORT))
        opened.settimeout(5)
        yield opened


@contextlib.contextmanager
def captured(namespace: Netns) -> Iterator[PacketSocket]:
    """Everything that comes in by `eth0`."""
    wire = PacketSocket(namespace, "eth0")
    try:
        yield wire
    finally:
        wire.close()


def send(source: RoutedPod, family: Raw, address: str, message: bytes) -> None:
    """Sends an ICMP message with its checksum, which the kernel writes in IPv6."""
    with source.namespace.inside():
        opened = socket.socket(family[0], socket.SOCK_RAW, family[1])
    with opened:
        opened.sendto(message, (address, 0))


def exchange(one: socket.socket, other: socket.socket, address: str) -> None:
    """Makes a connection known to the kernel: a datagram to the other's address, and one back."""
    one.sendto(MARK, (address, PORT))
    message, sender = other.recvfrom(100)
    other.sendto(message, sender)
    assert one.recv(100) == MARK


def test_addresses_of_former_pods_are_no_way_to_another_network(node: RoutedNode, family: Raw) -> None:
    former = node.add_pod(2), node.add_pod(3)
    for pod in former:
        node.connect(pod)
    target = former[1].port.addresses[family[2]]
    with datagrams(former[0].namespace, family[0]) as one, datagrams(former[1].namespace, family[0]) as other:
        exchange(one, other, target)
    for pod in former:
        node.remove_pod(pod)
    node.reconcile()
    pods = node.add_pod(2, network=FIRST), node.add_pod(3, network=SECOND)
    for pod in pods:
        node.connect(pod)
    with datagrams(pods[0].namespace, family[0]) as one, datagrams(pods[1].namespace, family[0]) as other:
        one.sendto(MARK, (target, PORT))
        other.settimeout(0.5)
        with pytest.raises(TimeoutError):
            other.recv(100)


def test_errors_about_connections_of_another_network_do_not_reach_it(node: RoutedNode, family: Raw) -> None:
    attacker, victim, peer = (node.add_pod(number, network=(FIRST, SECOND, SECOND)[number - 2]) for number in (2, 3, 4))
    for pod in (attacker, victim, peer):
        node.connect(pod)
    own, other_end = (pod.port.addresses[family[2]] for pod in (victim, peer))
    datagram = frames.udp(MARK, source=PORT, destination=PORT)
    with ExitStack() as stack:
        one = stack.enter_context(datagrams(victim.namespace, family[0]))
        other = stack.enter_context(datagrams(peer.namespace, family[0]))
        exchange(one, other, other_end)
        if family[0] == socket.AF_INET:
            error = frames.icmp(UNREACHABLE, PORT_CODE, bytes(4) + frames.ipv4(own, other_end, datagram))
        else:
            inner = frames.ipv6(own, other_end, frames.UDP, datagram)
            error = frames.icmp(UNREACHABLE_V6, PORT_CODE_V6, bytes(4) + inner)
        wire = stack.enter_context(captured(victim.namespace))
        send(attacker, family, own, error)
        other.sendto(LAST, (own, PORT))
        assert not any(MARK in frame for frame in wire.received_until(LAST))


def test_packets_of_no_connection_do_not_leave_with_the_address_of_a_pod(node: RoutedNode, family: Raw) -> None:
    pod = node.add_pod(2)
    node.connect(pod)
    kind = ECHO_REPLY if family[0] == socket.AF_INET else ECHO_REPLY_V6
    target = OUTSIDE[family[2]]
    assert reaches(pod.namespace, target)  # its neighbours are known
    with captured(node.outside) as wire, datagrams(pod.namespace, family[0]) as last:
        send(pod, family, target, frames.icmp(kind, 0, bytes(4) + MARK))
        last.sendto(LAST, (target, PORT))
        assert not any(MARK in frame for frame in wire.received_until(LAST))


def test_packets_of_no_connection_pass_where_nothing_is_translated(node: RoutedNode, family: Raw) -> None:
    pod = node.add_pod(2)
    node.connect(pod)
    node.masquerade = None
    node.reconcile()
    with captured(node.outside) as wire, datagrams(pod.namespace, family[0]) as last:
        kind = ECHO_REPLY if family[0] == socket.AF_INET else ECHO_REPLY_V6
        send(pod, family, OUTSIDE[family[2]], frames.icmp(kind, 0, bytes(4) + MARK))
        last.sendto(LAST, (OUTSIDE[family[2]], PORT))
        assert any(MARK in frame for frame in wire.received_until(LAST))
