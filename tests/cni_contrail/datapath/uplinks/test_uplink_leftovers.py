"""Leftovers of uplinks: the node's table goes also if its last uplink went some other way than by its removal."""

from cni_contrail.datapath import uplink_rules
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.purge import purge
from tests.cni_contrail.datapath.uplinks.conftest import OUTSIDE, UplinkNode
from tests.cni_contrail.datapath.uplinks.test_uplinks import link_of, settled
from tests.support.echo import reaches


def without_its_uplink(node: UplinkNode) -> None:
    """Leaves a node as if the process that removed its only uplink had been killed before it removed the table."""
    network = node.network(snat=True)
    settled(node, network)
    node.namespace.ip("link", "delete", link_of(network))
    node.namespaces.delete(network.vni)
    assert uplink_rules.TABLE.name in node.run("nft", "list", "tables")


def test_a_table_that_an_uplink_has_left_is_removed(node: UplinkNode) -> None:
    without_its_uplink(node)
    assert node.reconcile().changes[INDEX_0] == 1
    assert node.run("nft", "list", "tables") == ""


def test_purge_removes_a_table_that_an_uplink_has_left(node: UplinkNode) -> None:
    without_its_uplink(node)
    with node.namespace.inside():
        assert INDEX_0 in purge(node.namespaces, with_ports=False).removed
    assert node.run("nft", "list", "tables") == ""


def test_a_table_of_an_uplink_that_a_port_needs_survives_a_purge(node: UplinkNode) -> None:
    network, pod = node.add_pod(node.network(snat=True))
    settled(node, network)
    with node.namespace.inside():
        assert set(purge(node.namespaces, with_ports=False).kept) == {network.vni}
    assert reaches(pod.namespace, OUTSIDE[0])
