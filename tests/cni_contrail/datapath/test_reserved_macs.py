"""A port or endpoint with the MAC of gateways or of a node takes nobody's packets, and is named."""

from collections.abc import Iterator

import pytest

from cni_contrail.datapath.attachment import connect_ports
from cni_contrail.datapath.desired import GATEWAY_MAC, LocalPort, Network, RemoteBlock, RemoteEndpoint
from cni_contrail.datapath.network_reconciler import reconcile_network
from cni_contrail.datapath.tunnel_names import node_mac
from cni_contrail.link.errors import LinkError
from tests.cni_contrail.datapath.conftest import GATEWAYS, Pod, VirtualNetwork
from tests.support.echo import reaches
from tests.support.node_fabric import Cluster, FabricNode, cluster_of

Pair = tuple[Pod, Pod]
VNI = 5_310_001


def with_mac(network: VirtualNetwork, link: str, mac: str) -> Network:
    """The network as it is desired, but with this MAC for the port."""
    desired = network.desired()
    return desired._replace(
        ports=tuple(each._replace(mac=mac) if each.link == link else each for each in desired.ports)
    )


@pytest.mark.parametrize(
    ("mac", "problem"),
    [
        (GATEWAY_MAC, f"MAC {GATEWAY_MAC} is reserved for gateways"),
        (node_mac("192.0.2.2"), "MAC 0e:00:c0:00:02:02 is reserved for nodes"),
        ("01:00:5e:00:00:01", "MAC 01:00:5e:00:00:01 is not a unicast address"),
    ],
)
def test_a_port_with_a_reserved_mac_is_named_and_the_others_are_connected(
    network: VirtualNetwork, pair: Pair, mac: str, problem: str
) -> None:
    network.add_pod(4)
    outcome = reconcile_network(network.netns, with_mac(network, "tap4", mac))
    assert outcome.problem == f"port tap4: {problem}"
    assert reconcile_network(network.netns, with_mac(network, "tap4", mac)).changes == 0
    assert mac not in network.run("nft", "list", "sets")
    for gateway in GATEWAYS:
        assert reaches(pair[0].namespace, gateway.address)
    assert reaches(pair[0].namespace, pair[1].ipv4)


def test_a_port_loses_the_gateways_mac_that_it_has_already(network: VirtualNetwork, pair: Pair) -> None:
    network.run("bridge", "fdb", "replace", GATEWAY_MAC, "dev", "tap3", "master", "static")
    outcome = reconcile_network(network.netns, with_mac(network, "tap3", GATEWAY_MAC))
    assert outcome.problem == f"port tap3: MAC {GATEWAY_MAC} is reserved for gateways"
    for gateway in GATEWAYS:
        assert reaches(pair[0].namespace, gateway.address)


def test_an_add_does_not_connect_a_port_with_a_reserved_mac(network: VirtualNetwork, pair: Pair) -> None:
    assert pair
    network.add_pod(4)
    port = LocalPort("tap4", GATEWAY_MAC, ("10.7.0.4",))
    with pytest.raises(LinkError, match=f"^port tap4: MAC {GATEWAY_MAC} is reserved for gateways$"):
        connect_ports(network.netns, [port])
    assert reaches(pair[0].namespace, GATEWAYS[0].address)
    assert "10.7.0.4" not in network.run("nft", "list", "sets")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two nodes with a pod of the network each."""
    with cluster_of(2) as found:
        for number, node in enumerate(found.nodes, start=2):
            found.add_pod(node, VNI, number)
        yield found


def test_the_gateways_mac_is_not_on_another_node(cluster: Cluster) -> None:
    node, pod = cluster.nodes[0], cluster.pods[0]
    network = cluster.network(node, VNI)
    strange = RemoteEndpoint(GATEWAY_MAC, ("10.7.0.66",), cluster.nodes[1].tunnel)
    outcome = node.reconcile([network._replace(remotes=(strange, *network.remotes))], cluster.underlay(node))
    assert outcome.problems == {
        VNI: f"pod on node {cluster.nodes[1].tunnel}: MAC {GATEWAY_MAC} is reserved for gateways"
    }
    assert "10.7.0.66" not in node.networks.run(VNI, "ip", "neighbour", "show", "dev", "br0")
    assert reaches(pod.namespace, GATEWAYS[0].address)
    other = cluster.nodes[1]
    other.reconcile([cluster.network(other, VNI)], cluster.underlay(other))
    assert reaches(pod.namespace, cluster.pods[1].ipv4)


def test_a_pod_does_not_take_what_is_routed_to_the_pods_of_a_node(cluster: Cluster) -> None:
    pods = cluster.pods
    for pod, other in zip(pods, reversed(pods), strict=True):
        pod.namespace.ip("route", "add", f"{other.ipv4}/32", "via", GATEWAYS[0].address)
    problems = [
        node.reconcile([routed(cluster, node)], cluster.underlay(node)).problems.get(VNI) for node in cluster.nodes
    ]
    assert problems == [None, None]
    attacker = cluster.add_pod(cluster.nodes[0], VNI, 66, mac=node_mac(cluster.nodes[1].tunnel))
    outcome = cluster.nodes[0].reconcile([routed(cluster, cluster.nodes[0])], cluster.underlay(cluster.nodes[0]))
    assert outcome.problems == {VNI: f"port {attacker.port.link}: MAC {attacker.port.mac} is reserved for nodes"}
    assert reaches(pods[0].namespace, pods[1].ipv4)


def routed(cluster: Cluster, node: FabricNode) -> Network:
    """The network as a node should have it, routed by single addresses on the other node."""
    others = [pod for pod in cluster.pods if pod.node is not node]
    blocks = tuple(RemoteBlock(f"{pod.ipv4}/32", pod.node.tunnel) for pod in others)
    return cluster.network(node, VNI)._replace(remotes=(), blocks=blocks, is_routed=True)
