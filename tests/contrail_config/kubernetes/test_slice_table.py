"""Slice table: what network slices say, and which of them a change affects."""

import msgspec
import pytest

from contrail_config.addressing.notation import parse_address
from contrail_config.kubernetes.blocks import BlockKey, PoolKey
from contrail_config.kubernetes.kinds import label_value
from contrail_config.kubernetes.slice_table import SliceKey, SliceTable
from contrail_config.objects import (
    Endpoint,
    ForwardingMode,
    InterfaceAddress,
    NetworkSlice,
    VirtualMachine,
    VirtualNetwork,
    interface_uuid,
    parse_endpoint,
)
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import interface_in, make_network, new_owner

BLUE = make_network("blue", "10.1.0.0/24", "fd00:1::/64", vni=7)
PODS = make_network("pods", "10.2.0.0/24", vni=1, forwarding_mode=ForwardingMode.L3)
A, B = "node-a", "node-b"


class Cluster:
    """A slice table with the networks and block homes that it asks for."""

    def __init__(self) -> None:
        self.networks = {network.uuid: network for network in (BLUE, PODS)}
        self.homes: dict[str, str] = {}
        self.node_addresses: dict[int, str] = {}  # by first address of the block
        self.table = SliceTable(
            self.networks.get,
            lambda _network, address: self.homes.get(address),
            lambda block: self.node_addresses.get(block.first),
        )
        for node, address in ((A, "192.0.2.1"), (B, "192.0.2.2")):
            self.table.set_tunnel(node, (address,))

    def set_block(self, first: str, node: str | None) -> set[SliceKey]:
        return self.table.set_block(BlockKey(PoolKey(PODS.uuid, 4), parse_address(first, family=4)), node)

    def slice(self, network: VirtualNetwork, node: str) -> NetworkSlice:
        found = self.table.slice(SliceKey(network.uuid, node))
        assert found is not None
        return found


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def pod(network: VirtualNetwork, *addresses: str, node: str = A, mac: str | None = None) -> VirtualMachine:
    """A pod with one interface in the network."""
    uid = new_owner()
    interface = interface_in(network, interface_uuid(uid, 0), *(InterfaceAddress(address, 24) for address in addresses))
    interface = msgspec.structs.replace(interface, vni=network.vni, **({} if mac is None else {"mac": mac}))
    return make_virtual_machine("web", uid=uid, node=node, interfaces=(interface,))


def owners(*virtual_machines: VirtualMachine) -> list[str]:
    return [interface.uuid for one in virtual_machines for interface in one.interfaces]


def test_a_slice_lists_the_endpoints_of_its_node(cluster: Cluster) -> None:
    cluster.table.put(pod(BLUE, "10.1.0.9", "fd00:1::9", mac="02:00:00:00:00:09"))
    cluster.table.put(pod(BLUE, "10.1.0.3", mac="02:00:00:00:00:03"))
    cluster.table.put(pod(BLUE, "10.1.0.4", node=B))
    assert cluster.slice(BLUE, A) == NetworkSlice(
        BLUE.uuid,
        A,
        BLUE.fq_name,
        7,
        tunnel=("192.0.2.1",),
        endpoints=(
            Endpoint("02:00:00:00:00:03", ("10.1.0.3",)).text,
            Endpoint("02:00:00:00:00:09", ("10.1.0.9", "fd00:1::9")).text,
        ),
    )
    assert [parse_endpoint(each).addresses for each in cluster.slice(BLUE, B).endpoints] == [("10.1.0.4",)]


def test_only_the_slices_of_a_changed_interface_are_affected(cluster: Cluster) -> None:
    first = pod(BLUE, "10.1.0.9")
    assert cluster.table.put(first) == {SliceKey(BLUE.uuid, A)}
    assert cluster.table.put(first) == set()
    moved = msgspec.structs.replace(first, node=B)
    assert cluster.table.put(moved) == {SliceKey(BLUE.uuid, A), SliceKey(BLUE.uuid, B)}
    assert cluster.table.slice(SliceKey(BLUE.uuid, A)) is None
    assert cluster.table.remove(owners(first)) == {SliceKey(BLUE.uuid, B)}
    assert cluster.table.remove(owners(first)) == set()
    assert cluster.table.keys() == set()


def test_there_is_no_slice_without_a_node_or_a_vni(cluster: Cluster) -> None:
    cluster.table.put(pod(BLUE, "10.1.0.9", node="unknown"))
    assert cluster.table.slice(SliceKey(BLUE.uuid, "unknown")) is None
    assert cluster.table.set_tunnel("unknown", ()) == {SliceKey(BLUE.uuid, "unknown")}
    assert cluster.slice(BLUE, "unknown").tunnel == ()
    cluster.networks[BLUE.uuid] = msgspec.structs.replace(BLUE, vni=0)
    assert cluster.table.slice(SliceKey(BLUE.uuid, "unknown")) is None


def test_a_change_of_a_nodes_addresses_affects_the_slices_of_that_node(cluster: Cluster) -> None:
    for network, node in ((BLUE, A), (BLUE, B)):
        cluster.table.put(pod(network, "10.1.0.9", node=node))
    cluster.set_block("10.2.0.0", A)
    both = {SliceKey(BLUE.uuid, A), SliceKey(PODS.uuid, A)}
    assert cluster.table.set_tunnel(A, ("192.0.2.9",)) == both
    assert cluster.slice(PODS, A).tunnel == ("192.0.2.9",)
    assert cluster.table.set_tunnel(A, ("192.0.2.9",)) == set()
    assert cluster.table.set_tunnel(A, None) == both
    assert cluster.table.slice(SliceKey(BLUE.uuid, A)) is None


def test_a_routed_network_lists_the_blocks_of_the_node(cluster: Cluster) -> None:
    assert cluster.set_block("10.2.0.64", A) == {SliceKey(PODS.uuid, A)}
    assert cluster.set_block("10.2.0.0", A) == {SliceKey(PODS.uuid, A)}
    assert cluster.set_block("10.2.0.0", A) == set()
    found = cluster.slice(PODS, A)
    assert (found.forwarding_mode, found.blocks) == (ForwardingMode.L3, ("10.2.0.0/26", "10.2.0.64/26"))
    assert cluster.set_block("10.2.0.0", B) == {SliceKey(PODS.uuid, A), SliceKey(PODS.uuid, B)}
    assert cluster.set_block("10.2.0.0", None) == {SliceKey(PODS.uuid, B)}
    assert cluster.table.slice(SliceKey(PODS.uuid, B)) is None


def test_blocks_of_ipv6_are_as_large(cluster: Cluster) -> None:
    cluster.table.set_block(BlockKey(PoolKey(PODS.uuid, 6), parse_address("fd00::40", family=6)), A)
    assert cluster.slice(PODS, A).blocks == ("fd00::40/122",)


def test_a_node_has_one_address_of_each_family_in_its_blocks(cluster: Cluster) -> None:
    for family, first, address in (
        (4, "10.2.0.64", "10.2.0.65"),
        (4, "10.2.0.128", "10.2.0.129"),
        (6, "fd00::", "fd00::2"),
    ):
        number = parse_address(first, family=family)
        cluster.node_addresses[number] = address
        cluster.table.set_block(BlockKey(PoolKey(PODS.uuid, family), number), A)
    cluster.set_block("10.2.0.0", A)
    assert cluster.slice(PODS, A).node_addresses == ("10.2.0.65", "fd00::2")


def test_pods_whose_addresses_are_in_blocks_of_their_node_affect_no_slice(cluster: Cluster) -> None:
    cluster.set_block("10.2.0.0", A)
    cluster.homes["10.2.0.5"] = A
    inside = pod(PODS, "10.2.0.5")
    assert cluster.table.put(inside) == set()
    assert cluster.slice(PODS, A).borrowed == ()
    assert cluster.table.remove(owners(inside)) == set()


def test_borrowed_addresses_are_listed_one_by_one(cluster: Cluster) -> None:
    cluster.homes |= {"10.2.0.5": A, "10.2.0.70": B}
    cluster.set_block("10.2.0.0", A)
    borrower = pod(PODS, "10.2.0.70")
    assert cluster.table.put(borrower) == {SliceKey(PODS.uuid, A)}
    cluster.table.put(pod(PODS, "10.2.0.5"))
    assert cluster.slice(PODS, A).borrowed == ("10.2.0.70",)
    assert cluster.table.remove(owners(borrower)) == {SliceKey(PODS.uuid, A)}
    assert cluster.slice(PODS, A).borrowed == ()


def test_a_network_that_becomes_routed_lists_endpoints_until_its_last_bridged_pod_has_gone(cluster: Cluster) -> None:
    on_a, on_b = pod(BLUE, "10.1.0.9", mac="02:00:00:00:00:09"), pod(BLUE, "10.1.0.4", node=B)
    cluster.table.put(on_a)
    cluster.table.put(on_b)
    routed = cluster.networks[BLUE.uuid] = msgspec.structs.replace(BLUE, forwarding_mode=ForwardingMode.L3)
    both = {SliceKey(BLUE.uuid, A), SliceKey(BLUE.uuid, B)}
    assert cluster.table.of_network(BLUE.uuid) == both
    found = cluster.slice(BLUE, A)
    assert found.endpoints == (Endpoint("02:00:00:00:00:09", ("10.1.0.9",)).text,)
    assert (found.forwarding_mode, found.borrowed) == (ForwardingMode.L3, ("10.1.0.9",))
    cluster.homes["10.1.0.70"] = A
    new = pod(routed, "10.1.0.70", mac="02:00:00:00:00:70")
    assert cluster.table.put(new) == {SliceKey(BLUE.uuid, A)}, "bridged pods need its endpoint"
    assert [parse_endpoint(each).mac for each in cluster.slice(BLUE, A).endpoints] == [
        "02:00:00:00:00:09",
        "02:00:00:00:00:70",
    ]
    assert cluster.table.remove(owners(on_a)) == {SliceKey(BLUE.uuid, A)}
    assert cluster.table.remove(owners(on_b)) == both
    assert cluster.table.slice(SliceKey(BLUE.uuid, A)) is None, "its block is not known here"
    assert cluster.table.remove(owners(new)) == set()


def test_a_network_that_becomes_bridged_lists_all_endpoints_and_no_block(cluster: Cluster) -> None:
    cluster.set_block("10.2.0.0", A)
    cluster.table.put(pod(PODS, "10.2.0.5", mac="02:00:00:00:00:05", node=B))
    cluster.networks[PODS.uuid] = msgspec.structs.replace(PODS, forwarding_mode=ForwardingMode.L2_L3)
    assert cluster.table.of_network(PODS.uuid) == {SliceKey(PODS.uuid, A), SliceKey(PODS.uuid, B)}
    assert cluster.slice(PODS, B).endpoints == (Endpoint("02:00:00:00:00:05", ("10.2.0.5",)).text,)
    assert cluster.slice(PODS, B).borrowed == ()
    assert cluster.table.slice(SliceKey(PODS.uuid, A)) is None


def test_a_network_that_somebody_deleted_keeps_its_slices(cluster: Cluster) -> None:
    cluster.table.put(pod(PODS, "10.2.0.70"))
    before = cluster.slice(PODS, A)
    del cluster.networks[PODS.uuid]
    assert cluster.slice(PODS, A) == before


def test_nodes_are_found_by_their_labels(cluster: Cluster) -> None:
    long = "n" * 200
    cluster.table.set_tunnel(long, ())
    assert cluster.table.node_of_label(label_value(long)) == long
    assert cluster.table.node_of_label("other") is None


def test_a_change_of_a_network_affects_its_slices_only_if_they_depend_on_it(cluster: Cluster) -> None:
    """A tenant may change the MTU of a network on a thousand nodes all the time."""
    cluster.table.put(pod(BLUE, "10.1.0.9"))
    cluster.table.put(pod(BLUE, "10.1.0.4", node=B))
    all_slices = {SliceKey(BLUE.uuid, A), SliceKey(BLUE.uuid, B)}
    assert cluster.table.network_changed(BLUE.uuid) == all_slices, "it was not known before"
    current = BLUE
    for change, affected in (
        ({"mtu": 9000}, set()),
        ({"retired": True}, set()),
        ({"vni": 8}, all_slices),
        ({"forwarding_mode": ForwardingMode.L3}, all_slices),
        ({"subnets": BLUE.subnets[:1]}, all_slices),
    ):
        current = cluster.networks[BLUE.uuid] = msgspec.structs.replace(current, **change)
        assert cluster.table.network_changed(BLUE.uuid) == affected
        assert cluster.table.network_changed(BLUE.uuid) == set()
    del cluster.networks[BLUE.uuid]
    assert cluster.table.network_changed(BLUE.uuid) == all_slices
    assert cluster.table.network_changed(BLUE.uuid) == set()
    cluster.networks[BLUE.uuid] = current
    assert cluster.table.network_changed(BLUE.uuid) == all_slices
