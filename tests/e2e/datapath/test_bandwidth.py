"""Bandwidth of a pod: Debian's `bandwidth` behind the plugin limits both directions."""

import time
from collections.abc import Callable, Iterator

import pytest

from cni_contrail.datapath.desired import GATEWAY_MAC
from tests.e2e.datapath.node import FAMILIES, NODE, OUTSIDE, AttachedPod, Node
from tests.e2e.name_server import Connection, serve_names
from tests.e2e.polling import wait_until
from tests.e2e.services import SERVER_PORT

RATE, BURST = 16_000_000, 800_000  # bits per second, bits
LIMITS = {"ingressRate": RATE, "ingressBurst": BURST, "egressRate": RATE, "egressBurst": BURST}
BYTES = 1_500_000
AT_LEAST = (8 * BYTES - BURST) / RATE * 0.9
"""Seconds that a transfer takes with the limit, at least; headers and acknowledgements take longer."""


@pytest.fixture(scope="module")
def limited(node: Node) -> Iterator[AttachedPod]:
    """A pod with limits for both directions, and a server."""
    with node.attached(f"limited-{node.name}", bandwidth=LIMITS) as pod, serve_names(pod.path, "limited", SERVER_PORT):
        yield pod


@pytest.mark.parametrize("family", FAMILIES, ids=["IPv4", "IPv6"])
def test_what_a_pod_sends_and_receives_is_limited(node: Node, limited: AttachedPod, family: int) -> None:
    with Connection(limited.path, OUTSIDE[family], SERVER_PORT) as connection:
        assert connection.ask().client == NODE[family]
        assert _seconds(connection.send) >= AT_LEAST
        assert _seconds(connection.receive) >= AT_LEAST


def test_traffic_with_the_node_is_limited(node: Node, limited: AttachedPod) -> None:
    with Connection(node.path, limited.addresses[0], SERVER_PORT) as connection:
        assert _seconds(connection.send) >= AT_LEAST
        assert _seconds(connection.receive) >= AT_LEAST


def test_check_accepts_the_limits(node: Node, limited: AttachedPod) -> None:
    node.check(limited)


def test_the_datapath_keeps_the_limits_when_it_repairs_the_host_end(node: Node, limited: AttachedPod) -> None:
    def limits() -> str:
        return node.host.run("tc", "qdisc", "show", "dev", limited.host_end)

    before = limits()
    assert "tbf" in before
    assert "ingress" in before
    node.host.run("ip", "link", "set", limited.host_end, "address", "02:00:00:00:00:99")
    with node.attached(f"fourth-{node.name}"):  # so that the daemon compares all
        wait_until(lambda: GATEWAY_MAC in _link(node, limited), what="repaired", otherwise=node.daemon.output)
        assert limits() == before
        node.check(limited)


def test_its_links_go_with_the_pod(node: Node) -> None:
    before = node.host.net.links()
    with node.attached(f"brief-{node.name}", bandwidth=LIMITS):
        assert any(link.startswith("bwp") for link in node.host.net.links())
    assert node.host.net.links() == before


def _link(node: Node, pod: AttachedPod) -> str:
    return node.host.run("ip", "link", "show", "dev", pod.host_end)


def _seconds(transfer: Callable[[int], None]) -> float:
    started = time.monotonic()
    transfer(BYTES)
    return time.monotonic() - started
