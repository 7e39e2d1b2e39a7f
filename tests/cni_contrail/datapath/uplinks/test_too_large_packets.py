"""Packets that do not fit the MTU of their network: what is routed is counted, and answered."""

import socket
from pathlib import Path

import pytest

from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.too_large import count_too_large
from tests.cni_contrail.datapath.uplinks.conftest import OUTSIDE, Pod, UplinkNode

MTU = 1300
FITTING, TOO_LARGE = 1200, 1350  # bytes of payload; the pod's own MTU is 1450
_DISCOVERY = {socket.AF_INET: (socket.IPPROTO_IP, 10), socket.AF_INET6: (socket.IPPROTO_IPV6, 23)}
_PROBE = 3  # IP_PMTUDISC_PROBE: not fragmented, and without regard to what was learnt


@pytest.fixture
def network(node: UplinkNode) -> tuple[Network, Pod, Pod]:
    """A network whose MTU was lowered while its pods had a larger one, but for the second one."""
    wide, first = node.add_pod(node.network(snat=True))
    wide, second = node.add_pod(wide, number=3)
    narrow = wide._replace(mtu=MTU)
    node.networks.run(narrow.vni, "ip", "link", "set", second.port.link, "mtu", str(MTU))
    second.namespace.ip("link", "set", "eth0", "mtu", str(MTU))
    node.reconcile(narrow)
    return narrow, first, second


@pytest.mark.parametrize("address", OUTSIDE)
def test_routed_packets_that_are_too_large_are_counted(
    node: UplinkNode, network: tuple[Network, Pod, Pod], address: str
) -> None:
    desired, pod, _ = network
    before = node.reconcile(desired).drops[desired.vni]
    _send(pod, address, TOO_LARGE, 3)
    _send(pod, address, FITTING, 5)
    assert node.reconcile(desired).drops[desired.vni] == before._replace(mtu=before.mtu + 3)


def test_frames_between_pods_that_are_too_large_are_not_counted(
    node: UplinkNode, network: tuple[Network, Pod, Pod]
) -> None:
    desired, first, second = network
    before = node.reconcile(desired).drops[desired.vni]
    for address in (second.ipv4, second.ipv6):
        _send(first, address, TOO_LARGE, 3)
    assert node.reconcile(desired).drops[desired.vni] == before


def test_a_kernel_without_ipv6_has_those_of_ipv4(tmp_path: Path) -> None:
    (tmp_path / "snmp").write_text("Ip: Forwarding FragFails FragCreates\nIp: 1 7 0\nIcmp: InMsgs\nIcmp: 9\n")
    assert count_too_large(str(tmp_path)) == 7


def _send(pod: Pod, address: str, size: int, number: int) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with pod.namespace.inside(), socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(*_DISCOVERY[family], _PROBE)
        for _ in range(number):
            try:
                sender.sendto(bytes(size), (address, 9))
            except ConnectionRefusedError:  # an answer to an earlier one
                sender.sendto(bytes(size), (address, 9))
