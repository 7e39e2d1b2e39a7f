"""Inspection of a node: real namespaces as the reconciler leaves them have no differences, and damage is named."""

import subprocess
from collections.abc import Iterator, Sequence

import pytest

from cni_contrail.datapath.desired import GATEWAY_MAC, Network, RemoteBlock, Routed, RoutedNetwork, Underlay
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.node_reconciler import NOTHING_ROUTED
from cni_contrail.inspection.difference import MISSING, STALE, WRONG, Difference
from cni_contrail.inspection.node_inspection import inspect_node
from tests.support.node_fabric import MTU, PORT, Cluster, FabricNode, cluster_of

RED, BLUE = 5_300_001, 5_300_002
STRANGE = "02:00:00:00:00:99"
FILTER = "anti-spoofing filter"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two nodes with a pod of the network red each, and the tunnels between them."""
    with cluster_of(2) as found:
        for number, node in enumerate(found.nodes, start=2):
            found.add_pod(node, RED, number)
        found.sync()
        yield found


@pytest.fixture
def node(cluster: Cluster) -> FabricNode:
    return cluster.nodes[0]


def inspected(cluster: Cluster, node: FabricNode, *networks: Network) -> list[Difference]:
    """Inspects a node that should have the network red, or others."""
    desired = networks or (cluster.network(node, RED),)
    return inspect(node, desired, cluster.underlay(node))


def inspect(
    node: FabricNode, networks: Sequence[Network], underlay: Underlay, routed: Routed = NOTHING_ROUTED
) -> list[Difference]:
    with node.namespace.inside():
        return inspect_node(networks, routed, underlay, ("0.0.0.0/0", "::/0"), namespaces=node.networks.namespaces)


def test_a_reconciled_node_has_no_differences_and_is_not_changed(cluster: Cluster, node: FabricNode) -> None:
    before = _tables(node)
    assert inspected(cluster, node) == []
    assert _tables(node) == before


def test_an_ipv6_only_underlay_has_no_differences() -> None:
    with cluster_of(2, families=(1,)) as found:
        for number, each in enumerate(found.nodes, start=2):
            found.add_pod(each, RED, number)
        found.sync()
        assert [inspected(found, each) for each in found.nodes] == [[], []]


def test_entries_of_a_moved_pod_are_wrong_and_not_missing(cluster: Cluster, node: FabricNode) -> None:
    network = cluster.network(node, RED)
    (remote,) = network.remotes
    moved = network._replace(remotes=(remote._replace(tunnel="192.0.2.7"),))
    entry = f"entry of vx0 for {remote.mac}: to node"
    found = inspected(cluster, node, moved)
    assert Difference(RED, WRONG, f"{entry} 192.0.2.7", f"{entry} 192.0.2.2") in found
    assert [each.fault for each in found] == [MISSING, WRONG]  # missing: the new node in the filter of tunnel packets


def test_what_is_behind_a_missing_tunnel_is_not_listed(cluster: Cluster, node: FabricNode) -> None:
    node.networks.run(RED, "ip", "link", "delete", "vx0")
    assert inspected(cluster, node) == [Difference(RED, MISSING, "tunnel vx0")]


def test_settings_of_a_tunnel_are_named(cluster: Cluster, node: FabricNode) -> None:
    node.networks.run(RED, "ip", "link", "set", "vx0", "mtu", "1300")
    node.networks.run(RED, "bridge", "link", "set", "dev", "vx0", "flood", "on")
    (difference,) = inspected(cluster, node)
    assert difference == Difference(RED, WRONG, "tunnel vx0", f"mtu is 1300, not {MTU}, settings of the bridge port")


def test_a_missing_bridge_is_one_difference(cluster: Cluster, node: FabricNode) -> None:
    node.networks.run(RED, "ip", "link", "delete", "br0")
    assert inspected(cluster, node) == [Difference(RED, MISSING, "bridge br0")]


def test_a_lost_host_end_is_one_difference(cluster: Cluster, node: FabricNode) -> None:
    node.networks.run(RED, "ip", "link", "delete", "tap2")
    assert inspected(cluster, node) == [Difference(RED, MISSING, "host end tap2")]


def test_a_lost_or_moved_entry_of_the_gateway_is_named(cluster: Cluster, node: FabricNode) -> None:
    entry = f"entry of the bridge for {GATEWAY_MAC}: by"
    node.networks.run(RED, "bridge", "fdb", "replace", GATEWAY_MAC, "dev", "tap2", "master", "static")
    assert inspected(cluster, node) == [Difference(RED, WRONG, f"{entry} br0", f"{entry} tap2")]
    node.networks.run(RED, "bridge", "fdb", "delete", GATEWAY_MAC, "dev", "tap2", "master")
    assert inspected(cluster, node) == [Difference(RED, MISSING, f"{entry} br0")]


def test_a_host_end_with_a_reserved_mac_is_named(cluster: Cluster, node: FabricNode) -> None:
    network = cluster.network(node, RED)
    (port,) = network.ports
    found = inspected(cluster, node, network._replace(ports=(port._replace(mac=GATEWAY_MAC),)))
    assert Difference(RED, WRONG, "host end tap2", f"MAC {GATEWAY_MAC} is reserved for gateways") in found


def test_missing_and_stale_elements_of_the_filter_are_named(cluster: Cluster, node: FabricNode) -> None:
    element = "{{ tap2 . {} . 10.7.0.{} }}".format
    mac = cluster.pods[0].port.mac
    nft = ("element", "bridge", "contrail", "ipv4")
    node.networks.run(RED, "nft", "delete", *nft, element(mac, 2))
    node.networks.run(RED, "nft", "add", *nft, element(mac, 66))
    assert inspected(cluster, node) == [
        Difference(RED, MISSING, f"{FILTER}: 10.7.0.2 with {mac} from tap2"),
        Difference(RED, STALE, f"{FILTER}: 10.7.0.66 with {mac} from tap2"),
    ]


def test_a_stale_neighbour_and_route_are_named(cluster: Cluster, node: FabricNode) -> None:
    node.networks.run(RED, "ip", "neighbour", "add", "10.7.0.9", "lladdr", STRANGE, "dev", "br0", "nud", "permanent")
    assert inspected(cluster, node) == [Difference(RED, STALE, f"neighbour 10.7.0.9: {STRANGE}")]


def test_tables_of_other_programs_and_dormant_ones_are_named(cluster: Cluster, node: FabricNode) -> None:
    node.networks.run(RED, "nft", "add", "table", "inet", "others")
    node.networks.run(RED, "nft", "add", "table", "bridge", "contrail", "{ flags dormant; }")
    assert inspected(cluster, node) == [
        Difference(RED, WRONG, FILTER, "missing, or its rules were changed"),
        Difference(RED, STALE, "nf_tables table inet others of another program"),
    ]


def test_a_blocked_host_end_is_named(cluster: Cluster, node: FabricNode) -> None:
    node.networks.run(RED, "bridge", "link", "set", "dev", "tap2", "state", "0")
    assert inspected(cluster, node) == [
        Difference(RED, WRONG, "host end tap2", "the bridge forwards none of its frames")
    ]


def test_a_host_end_with_a_lower_mtu_than_its_pod_is_named(cluster: Cluster, node: FabricNode) -> None:
    network = cluster.network(node, RED)
    desired = network._replace(ports=tuple(port._replace(mtu=MTU) for port in network.ports))
    assert inspected(cluster, node, desired) == []
    node.networks.run(RED, "ip", "link", "set", "tap2", "mtu", "1300")
    assert inspected(cluster, node, desired) == [Difference(RED, WRONG, "MTU of host end tap2", f"1300, not {MTU}")]
    cluster.pods[0].namespace.ip("link", "set", "eth0", "mtu", "1350")  # as a chained plugin does
    assert inspected(cluster, node, desired) == [Difference(RED, WRONG, "MTU of host end tap2", "1300, not 1350")]
    node.networks.run(RED, "ip", "link", "set", "tap2", "mtu", "1350")
    assert inspected(cluster, node, desired) == []


def test_a_network_that_routes_between_pods_must_forward(cluster: Cluster, node: FabricNode) -> None:
    network = cluster.network(node, RED)._replace(is_routed=True)
    assert node.reconcile([network], cluster.underlay(node)).problems == {}
    assert inspected(cluster, node, network) == []
    node.networks.run(RED, "sysctl", "-qw", "net.ipv4.ip_forward=0")
    assert inspected(cluster, node, network) == [
        Difference(RED, WRONG, "settings of the network namespace", "net.ipv4.ip_forward is off")
    ]


def test_nothing_is_stale_while_the_network_is_not_complete(cluster: Cluster, node: FabricNode) -> None:
    network = cluster.network(node, RED)
    assert inspected(cluster, node, network._replace(remotes=(), is_complete=False)) == []


def test_a_network_without_a_namespace_is_missing_once_it_has_a_port(cluster: Cluster, node: FabricNode) -> None:
    red = cluster.network(node, RED)
    assert inspected(cluster, node, red, red._replace(vni=BLUE, ports=(), remotes=())) == []
    missing = Difference(BLUE, MISSING, f"network namespace contrail-{BLUE}")
    assert missing in inspected(cluster, node, red, red._replace(vni=BLUE))


def test_a_namespace_without_ports_is_stale_and_one_with_ports_is_not(cluster: Cluster, node: FabricNode) -> None:
    underlay = cluster.underlay(node)
    assert inspect(node, (), underlay) == []
    cluster.remove_pod(cluster.pods[0])
    assert inspect(node, (), underlay) == [Difference(RED, STALE, f"network namespace contrail-{RED}")]


def test_the_filter_of_tunnel_packets_is_compared(cluster: Cluster, node: FabricNode) -> None:
    node.run("nft", "add", "element", "inet", "contrail-tunnels", "ipv4", "{ 192.0.2.9 }")
    assert inspected(cluster, node) == [Difference(INDEX_0, STALE, "filter of tunnel packets: node 192.0.2.9")]
    node.run("nft", "delete", "table", "inet", "contrail-tunnels")
    problem = "missing, or its rules were changed"
    assert inspected(cluster, node) == [Difference(INDEX_0, WRONG, "filter of tunnel packets", problem)]


def test_index_0_with_blocks_on_other_nodes_is_compared() -> None:
    with cluster_of(2) as found:
        node, other = found.nodes
        pod = found.add_routed_pod(node, ("10.9.0.5", "fd09::5"))
        network = RoutedNetwork(1, MTU, ("10.9.0.0",), ("10.9.0.0/26",), (RemoteBlock("10.9.0.64/26", other.tunnel),))
        found.sync_index_0({node: network})
        underlay, routed = found.underlay(node)._replace(routed=network), Routed((pod.port,), None)
        assert inspect(node, (), underlay, routed) == []
        node.run("ip", "route", "delete", "10.9.0.64/26")
        node.run("ip", "neighbour", "delete", "10.9.0.5", "dev", pod.port.link)
        node.run("nft", "flush", "chain", "inet", "contrail", _first_chain(node))
        route = f"route to 10.9.0.64/26 by {other.tunnel} on contrail.0 from 10.9.0.0"
        assert set(inspect(node, (), underlay, routed)) == {
            Difference(INDEX_0, MISSING, route),
            Difference(INDEX_0, MISSING, f"neighbour 10.9.0.5 by {pod.port.link}: {pod.port.mac}"),
            Difference(INDEX_0, WRONG, "filter of index 0", "missing, or its rules were changed"),
        }
        node.run("ip", "link", "set", pod.port.link, "mtu", "1300")
        low = Difference(INDEX_0, WRONG, f"MTU of host end {pod.port.link}", f"1300, not {MTU}")
        assert low in inspect(node, (), underlay, Routed((pod.port._replace(mtu=MTU),), None))
        node.run("ip", "link", "delete", pod.port.link)
        assert Difference(INDEX_0, MISSING, f"host end {pod.port.link}") in inspect(node, (), underlay, routed)


def test_a_table_of_index_0_without_ports_is_stale() -> None:
    with cluster_of(1) as found:
        (node,) = found.nodes
        pod = found.add_routed_pod(node, ("10.9.0.5", "fd09::5"))
        alone = Underlay((), PORT, frozenset())
        assert inspect(node, (), alone) == []  # nobody desires the port, but it keeps what it has
        node.run("ip", "link", "delete", pod.port.link)
        assert inspect(node, (), alone) == [Difference(INDEX_0, STALE, "filter of index 0")]


def test_an_uplink_is_compared(cluster: Cluster, node: FabricNode) -> None:
    network = cluster.network(node, RED)._replace(snat=True)
    assert node.reconcile([network], cluster.underlay(node)).problems == {}
    assert inspected(cluster, node, network) == []
    node.networks.run(RED, "ip", "route", "delete", "default", "dev", "up")
    assert inspected(cluster, node, network) == [Difference(RED, MISSING, "route to 0.0.0.0/0 by up")]
    node.networks.run(RED, "nft", "flush", "table", "inet", "contrail-uplink")
    node.run("nft", "flush", "table", "inet", "contrail-uplink")
    node.run("ip", "link", "delete", f"ctup-{RED}")
    changed = "missing, or its rules were changed"
    assert inspected(cluster, node, network) == [
        Difference(INDEX_0, WRONG, "filter of uplinks", changed),
        Difference(RED, MISSING, "uplink up"),
        Difference(RED, MISSING, f"uplink ctup-{RED}"),
        Difference(RED, WRONG, "filter of the uplink", changed),
    ]


def test_a_table_of_uplinks_without_an_uplink_is_stale(cluster: Cluster, node: FabricNode) -> None:
    network = cluster.network(node, RED)._replace(snat=True)
    node.reconcile([network], cluster.underlay(node))
    node.run("ip", "link", "delete", f"ctup-{RED}")
    assert inspected(cluster, node) == [Difference(INDEX_0, STALE, "filter of uplinks")]


def _first_chain(node: FabricNode) -> str:
    lines = node.run("nft", "list", "table", "inet", "contrail").splitlines()
    return next(line.split()[1] for line in lines if line.strip().startswith("chain "))


def _tables(node: FabricNode) -> list[str]:
    """Everything that an inspection may have changed."""
    commands = (
        ("ip", "address"),
        ("bridge", "fdb"),
        ("ip", "neighbour"),
        ("ip", "route"),
        ("nft", "list", "ruleset"),
    )
    own = [node.run(*command) for command in commands]
    networks = subprocess.run(["ls", str(node.networks.folder)], check=True, capture_output=True, text=True).stdout
    return [*own, networks, *(node.networks.run(RED, *command) for command in commands)]
