"""Services of a real kube-proxy on a node whose kernel routes index 0 of its pods, in both families.

Every server answers with its name and the client's address as it sees it.
"""

import pytest

from tests.e2e.datapath.conftest import Pods, Services
from tests.e2e.datapath.node import EXCLUDED, FAMILIES, GATEWAYS, NODE, OUTSIDE, UPLINK, Node
from tests.e2e.name_server import TCP, UDP, Answer, ask
from tests.e2e.services import SERVER_PORT, SERVICE_PORT

pytestmark = [
    pytest.mark.usefixtures("kube_proxy"),
    pytest.mark.parametrize("family", FAMILIES, ids=["IPv4", "IPv6"]),
]


@pytest.mark.parametrize("protocol", [TCP, UDP])
def test_a_pod_reaches_a_service_of_another_pod(pods: Pods, services: Services, family: int, protocol: str) -> None:
    answer = ask(pods.client.path, services.web.addresses[family], SERVICE_PORT, protocol)
    assert answer == Answer("web", pods.client.addresses[family])


@pytest.mark.parametrize("protocol", [TCP, UDP])
def test_a_pod_reaches_its_own_service(pods: Pods, services: Services, family: int, protocol: str) -> None:
    answer = ask(pods.web.path, services.web.addresses[family], SERVICE_PORT, protocol)
    assert answer == Answer("web", GATEWAYS[family])


@pytest.mark.parametrize("protocol", [TCP, UDP])
def test_the_node_reaches_a_service_of_a_pod(node: Node, services: Services, family: int, protocol: str) -> None:
    answer = ask(node.path, services.web.addresses[family], SERVICE_PORT, protocol)
    assert answer == Answer("web", GATEWAYS[family])


def test_a_pod_reaches_a_service_of_the_node(pods: Pods, services: Services, family: int) -> None:
    answer = ask(pods.client.path, services.node.addresses[family], SERVICE_PORT)
    assert answer == Answer("node", pods.client.addresses[family])


def test_a_pod_reaches_a_service_of_a_host_outside_with_the_address_of_the_node(
    pods: Pods, services: Services, family: int
) -> None:
    answer = ask(pods.client.path, services.outside.addresses[family], SERVICE_PORT)
    assert answer == Answer("outside", NODE[family])


def test_pods_reach_each_other_and_the_node_with_their_own_address(pods: Pods, family: int) -> None:
    own = pods.client.addresses[family]
    for server, address in (("web", pods.web.addresses[family]), ("node", NODE[family]), ("node", GATEWAYS[family])):
        assert ask(pods.client.path, address, SERVER_PORT) == Answer(server, own)


def test_the_node_reaches_a_pod_as_its_gateway(node: Node, pods: Pods, family: int) -> None:
    assert ask(node.path, pods.web.addresses[family], SERVER_PORT) == Answer("web", GATEWAYS[family])


@pytest.mark.parametrize("protocol", [TCP, UDP])
def test_a_pod_has_the_address_of_the_node_outside(pods: Pods, family: int, protocol: str) -> None:
    assert ask(pods.client.path, OUTSIDE[family], SERVER_PORT, protocol) == Answer("outside", NODE[family])


def test_a_pod_has_its_own_address_in_an_excluded_network(pods: Pods, family: int) -> None:
    answer = ask(pods.client.path, EXCLUDED[family], SERVER_PORT)
    assert answer == Answer("outside", pods.client.addresses[family])


def test_a_host_outside_reaches_a_node_port_as_the_gateway(node: Node, services: Services, family: int) -> None:
    assert ask(node.outside, NODE[family], services.web.node_port) == Answer("web", GATEWAYS[family])


def test_a_host_outside_reaches_a_node_port_of_local_endpoints_with_its_own_address(
    node: Node, services: Services, family: int
) -> None:
    assert ask(node.outside, NODE[family], services.web_local.node_port) == Answer("web", OUTSIDE[family])


def test_a_pod_reaches_a_node_port(pods: Pods, services: Services, family: int) -> None:
    for path in (pods.client.path, pods.web.path):
        assert ask(path, NODE[family], services.web.node_port).server == "web"


def test_source_addresses_are_validated_strictly(node: Node, pods: Pods, family: int) -> None:
    """The other tests pass with this setting."""
    assert family in FAMILIES
    for link in ("all", UPLINK, pods.web.host_end, pods.client.host_end):
        assert node.host.run("sysctl", "-n", f"net.ipv4.conf.{link}.rp_filter") == "1\n"
