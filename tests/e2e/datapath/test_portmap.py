"""hostPort: Debian's `portmap` behind the plugin, with a kube-proxy on the node, in both families."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.datapath.conftest import Pods
from tests.e2e.datapath.node import FAMILIES, GATEWAYS, NODE, OUTSIDE, AttachedPod, Node
from tests.e2e.name_server import TCP, UDP, Answer, ask, serve_names
from tests.e2e.services import SERVER_PORT

HOST_PORT = 18080
MAPPINGS: list[dict[str, Any]] = [
    {"hostPort": HOST_PORT, "containerPort": SERVER_PORT, "protocol": protocol} for protocol in ("tcp", "udp")
]

pytestmark = pytest.mark.usefixtures("kube_proxy")
families = pytest.mark.parametrize("family", FAMILIES, ids=["IPv4", "IPv6"])
protocols = pytest.mark.parametrize("protocol", [TCP, UDP])


@pytest.fixture(scope="module")
def published(node: Node) -> Iterator[AttachedPod]:
    """A pod whose server is published at a port of the node."""
    with (
        node.attached(f"published-{node.name}", portMappings=MAPPINGS) as pod,
        serve_names(pod.path, "published", SERVER_PORT),
    ):
        yield pod


@families
@protocols
def test_a_host_outside_reaches_it_with_its_own_address(
    node: Node, published: AttachedPod, family: int, protocol: str
) -> None:
    assert published
    assert ask(node.outside, NODE[family], HOST_PORT, protocol) == Answer("published", OUTSIDE[family])


@families
@protocols
def test_the_node_reaches_it(node: Node, published: AttachedPod, family: int, protocol: str) -> None:
    assert published
    assert ask(node.path, NODE[family], HOST_PORT, protocol).server == "published"


def test_the_node_reaches_it_at_its_loopback(node: Node, published: AttachedPod) -> None:
    assert published
    assert ask(node.path, "127.0.0.1", HOST_PORT) == Answer("published", GATEWAYS[0])


@families
@protocols
def test_a_pod_of_the_node_reaches_it(pods: Pods, published: AttachedPod, family: int, protocol: str) -> None:
    assert published
    assert ask(pods.client.path, NODE[family], HOST_PORT, protocol).server == "published"


@families
@protocols
def test_the_pod_itself_reaches_it(published: AttachedPod, family: int, protocol: str) -> None:
    assert ask(published.path, NODE[family], HOST_PORT, protocol) == Answer("published", GATEWAYS[family])


def test_its_rules_go_with_the_pod_and_those_of_others_stay(node: Node, pods: Pods) -> None:
    assert pods
    before, port = node.others_rules(), HOST_PORT + 1
    mappings = [{**each, "hostPort": port} for each in MAPPINGS]
    with (
        node.attached(f"passing-{node.name}", portMappings=mappings) as pod,
        serve_names(pod.path, "passing", SERVER_PORT),
    ):
        assert ask(node.outside, NODE[0], port).server == "passing"
        assert node.others_rules() != before
    traces = (*pod.addresses, str(port))
    assert [line for line in node.others_rules() if any(trace in line for trace in traces)] == []
    for address in NODE:
        with pytest.raises(ConnectionRefusedError):
            ask(node.outside, address, port)
