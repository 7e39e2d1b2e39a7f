"""Fabric: remote endpoints, blocks and nodes, from network slices."""

import msgspec

from agent_api.datapath.fabric import Fabric, RemoteBlock, RemoteEndpoint, RemoteNode, Tunnel
from agent_api.datapath.slice_index import SliceIndex
from contrail_config.objects import Endpoint, ForwardingMode, NetworkSlice
from contrail_config.reserved_macs import GATEWAY_MAC

BLUE, NAME = "b1a5e000-0000-4000-8000-000000000001", ("default-domain", "k8s-shop", "blue")


def make_slice(node: str, *tunnel: str, **fields: object) -> NetworkSlice:
    made = NetworkSlice(BLUE, node, NAME, 7, tunnel=tunnel)
    return msgspec.structs.replace(made, **fields)


def fabric(*slices: NetworkSlice) -> Fabric:
    """The fabric of the node `self`."""
    index = SliceIndex()
    for item in slices:
        index.put(item)
    return Fabric(index, node="self", port=4789)


def test_the_tunnel_is_what_the_slices_of_this_node_say() -> None:
    assert fabric(make_slice("other", "192.0.2.2")).tunnel is None
    assert fabric(make_slice("self")).tunnel is None
    assert fabric(make_slice("self", "fd00::1", "192.0.2.1")).tunnel == Tunnel(("192.0.2.1", "fd00::1"), 4789)


def test_other_nodes_are_listed_by_name() -> None:
    found = fabric(
        make_slice("self", "192.0.2.1"), make_slice("b", "192.0.2.3"), make_slice("a", "fd00::2"), make_slice("c")
    )
    assert found.nodes == (RemoteNode("a", ("fd00::2",)), RemoteNode("b", ("192.0.2.3",)))


def test_endpoints_of_other_nodes_have_the_address_of_their_node() -> None:
    here, there = Endpoint("02:00:00:00:00:01", ("10.1.0.2",)), Endpoint("02:00:00:00:00:02", ("10.1.0.3", "fd00::3"))
    found = fabric(
        make_slice("self", "192.0.2.1", endpoints=(here.text,)),
        make_slice("other", "192.0.2.2", endpoints=(there.text,)),
    )
    assert found.tunnel is not None
    expected = (RemoteEndpoint("02:00:00:00:00:02", ("10.1.0.3", "fd00::3"), "192.0.2.2"),)
    assert found.endpoints(BLUE, 7, found.tunnel) == expected


def test_an_endpoint_with_a_reserved_mac_is_left_out() -> None:
    endpoints = [Endpoint(mac, ("10.1.0.3",)).text for mac in (GATEWAY_MAC, "0e:00:c0:00:02:02", "02:00:00:00:00:02")]
    found = fabric(make_slice("self", "192.0.2.1"), make_slice("other", "192.0.2.2", endpoints=tuple(endpoints)))
    assert found.tunnel is not None
    assert [each.mac for each in found.endpoints(BLUE, 7, found.tunnel)] == ["02:00:00:00:00:02"]


def test_both_sides_choose_the_same_family() -> None:
    endpoint = Endpoint("02:00:00:00:00:02", ("10.1.0.3",)).text
    dual = make_slice("other", "fd00::2", "192.0.2.2", endpoints=(endpoint,))
    for own, chosen in ((("fd00::1", "192.0.2.1"), "192.0.2.2"), (("fd00::1",), "fd00::2")):
        (found,) = fabric(dual).endpoints(BLUE, 7, Tunnel(own, 4789))
        assert found.tunnel == chosen
    only_ipv6 = make_slice("other", "fd00::2", endpoints=(endpoint,))
    assert fabric(only_ipv6).endpoints(BLUE, 7, Tunnel(("192.0.2.1",), 4789)) == ()


def test_an_endpoint_that_two_nodes_claim_is_listed_once() -> None:
    endpoint = Endpoint("02:00:00:00:00:02", ("10.1.0.3",)).text
    found = fabric(
        *(make_slice(node, f"192.0.2.{number}", endpoints=(endpoint,)) for number, node in enumerate("ba", 2))
    )
    assert [each.tunnel for each in found.endpoints(BLUE, 7, Tunnel(("192.0.2.1",), 4789))] == ["192.0.2.3"]


def test_blocks_and_borrowed_addresses_are_listed() -> None:
    routed = {"forwarding_mode": ForwardingMode.L3}
    found = fabric(
        make_slice("self", "192.0.2.1", blocks=("10.2.0.0/26",), **routed),
        make_slice("other", "192.0.2.2", blocks=("10.2.0.64/26",), borrowed=("10.2.0.9", "fd00::9"), **routed),
    )
    assert found.tunnel is not None
    assert found.own_blocks(BLUE) == ("10.2.0.0/26",)
    assert found.blocks(BLUE, 7, found.tunnel) == (
        RemoteBlock("10.2.0.64/26", "192.0.2.2"),
        RemoteBlock("10.2.0.9/32", "192.0.2.2"),
        RemoteBlock("fd00::9/128", "192.0.2.2"),
    )
