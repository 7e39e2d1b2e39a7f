"""MTU without a configured one: nodes measure what fits the fabric, new pods get it, and changes are followed."""

import socket
from collections.abc import Iterator

import pytest

from tests.e2e.across_nodes.attached_pods import NETWORK, Pod, attached
from tests.e2e.across_nodes.cluster import Cluster, cluster_of
from tests.e2e.across_nodes.node import MTU
from tests.e2e.polling import wait_until

OVERHEAD = 50
"""Of tunnels over IPv4, which nodes prefer."""

_MEASURED_WITHIN = 90.0
"""Seconds: an audit every 30 s, a measurement as often, and the agent's next report."""

_HEADERS = 28  # of IPv4 and UDP
_IP_MTU_DISCOVER, _IP_PMTUDISC_DO = 10, 2  # not in Python's module


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two nodes; the MTU is not configured."""
    with cluster_of(2, mtu="auto") as made:
        made.add_nad(NETWORK, cidr="10.7.0.0/16,fd07::/64")
        yield made


def mtus(cluster: Cluster, pod: Pod) -> list[int]:
    """The MTUs of a pod's interfaces."""
    return [interface["mtu"] for interface in cluster.interfaces()[pod.name]]


def await_measured(cluster: Cluster, mtu: int) -> None:
    """Waits until both nodes report this tunnel MTU."""
    wait_until(
        lambda: list(cluster.tunnel_mtus().values()) == [mtu, mtu],
        what=f"measured: {mtu}",
        otherwise=lambda: str(cluster.tunnel_mtus()),
        deadline=_MEASURED_WITHIN,
    )


def passes(source: Pod, target: Pod, address: str, length: int) -> bool:
    """Whether a packet of this length reaches another pod undivided."""
    with target.sandbox.inside():
        receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with source.sandbox.inside():
        sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with receiving, sending:
        receiving.settimeout(10)
        receiving.bind((address, 0))
        sending.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
        sending.sendto(bytes(length - _HEADERS), receiving.getsockname())
        return len(receiving.recv(length)) == length - _HEADERS


def test_new_pods_get_what_fits_the_fabric_and_a_change_is_followed(cluster: Cluster) -> None:
    first, second = cluster.nodes
    await_measured(cluster, MTU - OVERHEAD)
    with attached(cluster, "first", first) as one, attached(cluster, "second", second) as other:
        assert mtus(cluster, one) == mtus(cluster, other) == [MTU - OVERHEAD] * 2
        for address in (other.index_0[0], other.addresses[0]):
            assert passes(one, other, address, MTU - OVERHEAD)
        for node in cluster.nodes:
            node.namespace.ip("link", "set", "eth0", "mtu", str(MTU - 100))
        await_measured(cluster, MTU - 100 - OVERHEAD)
        with attached(cluster, "third", first) as new:
            assert mtus(cluster, new) == [MTU - 100 - OVERHEAD] * 2
            assert mtus(cluster, one) == [MTU - OVERHEAD] * 2
