"""Slice table of a Contrail API server: slices follow from virtual machines and virtual routers."""

import uuid

import msgspec
import pytest

from contrail_config.objects import (
    ForwardingMode,
    InterfaceAddress,
    NetworkSlice,
    VirtualMachine,
    VirtualMachineInterface,
)
from contrail_config.vnc.slice_table import SliceKey, SliceTable
from tests.support.virtual_machines import make_virtual_machine

NETWORK, OTHER = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
NAME = ("default-domain", "k8s-default", "k8s-left-pod-network")
A, B = "node-a", "node-b"


def interface(number: int, *, network: str = NETWORK, vni: int = 5, mode: str = "l2_l3") -> VirtualMachineInterface:
    return VirtualMachineInterface(
        uuid=str(uuid.UUID(int=100 + number)),
        mac=f"02:00:00:00:00:{number:02x}",
        network_uuid=network,
        network=NAME,
        addresses=(InterfaceAddress(f"10.1.0.{number}", 24), InterfaceAddress(f"fd00::{number:x}", 64)),
        vni=vni,
        forwarding_mode=ForwardingMode(mode),
    )


def endpoint(number: int) -> str:
    return f"02:00:00:00:00:{number:02x} 10.1.0.{number} fd00::{number:x}"


def on(node: str, *interfaces: VirtualMachineInterface) -> VirtualMachine:
    return make_virtual_machine(pod=f"p{interfaces[0].mac}", node=node, interfaces=interfaces)


@pytest.fixture
def table() -> SliceTable:
    """With both nodes."""
    table = SliceTable()
    table.router_changed(A, ("192.0.2.1",))
    table.router_changed(B, ("192.0.2.2",))
    return table


def made(table: SliceTable, node: str, network: str = NETWORK) -> NetworkSlice:
    found = table.slice(SliceKey(network, node))
    assert found is not None
    return found


def test_a_slice_lists_the_interfaces_of_its_node(table: SliceTable) -> None:
    changed = table.machine_changed(None, on(A, interface(2), interface(1)))
    table.machine_changed(None, on(B, interface(3)))
    assert SliceKey(NETWORK, A) in changed
    assert made(table, A) == NetworkSlice(
        NETWORK, A, NAME, 5, ForwardingMode.L2_L3, ("192.0.2.1",), endpoints=(endpoint(1), endpoint(2))
    )
    assert made(table, B).endpoints == (endpoint(3),)
    assert table.keys([NETWORK, OTHER]) == {SliceKey(NETWORK, A), SliceKey(NETWORK, B)}


def test_a_routed_network_lists_addresses_and_no_endpoints(table: SliceTable) -> None:
    table.machine_changed(None, on(A, interface(1, mode="l3")))
    found = made(table, A)
    assert (found.forwarding_mode, found.borrowed, found.endpoints) == (ForwardingMode.L3, ("10.1.0.1", "fd00::1"), ())


def test_all_slices_of_a_routed_network_list_endpoints_while_a_pod_is_bridged(table: SliceTable) -> None:
    bridged = on(B, interface(2))
    table.machine_changed(None, on(A, interface(1, mode="l3")))
    assert table.machine_changed(None, bridged) == {SliceKey(NETWORK, A), SliceKey(NETWORK, B)}
    assert made(table, A).endpoints == (endpoint(1),)
    assert table.machine_changed(bridged, None) == {SliceKey(NETWORK, A), SliceKey(NETWORK, B)}
    assert made(table, A).endpoints == ()
    assert table.slice(SliceKey(NETWORK, B)) is None


def test_a_deleted_virtual_machine_leaves_nothing(table: SliceTable) -> None:
    machine = on(A, interface(1), interface(2, network=OTHER))
    table.machine_changed(None, machine)
    assert table.machine_changed(machine, None) == {SliceKey(NETWORK, A), SliceKey(OTHER, A)}
    assert table.keys([NETWORK, OTHER]) == set()
    assert table.slice(SliceKey(NETWORK, A)) is None


def test_a_virtual_machine_that_moves_changes_both_slices(table: SliceTable) -> None:
    machine = on(A, interface(1))
    moved = msgspec.structs.replace(machine, node=B)
    table.machine_changed(None, machine)
    assert table.machine_changed(machine, moved) == {SliceKey(NETWORK, A), SliceKey(NETWORK, B)}
    assert (table.slice(SliceKey(NETWORK, A)), made(table, B).endpoints) == (None, (endpoint(1),))


def test_a_virtual_router_that_appears_changes_or_goes_changes_the_slices_of_its_node(table: SliceTable) -> None:
    table.machine_changed(None, on(A, interface(1)))
    table.machine_changed(None, on(B, interface(2)))
    assert table.router_changed(A, ("192.0.2.9",)) == {SliceKey(NETWORK, A)}
    assert made(table, A).tunnel == ("192.0.2.9",)
    assert table.router_changed(A, None) == {SliceKey(NETWORK, A)}
    assert made(table, A).tunnel == ()


def test_the_virtual_router_of_a_node_may_have_its_name_in_another_case(table: SliceTable) -> None:
    table.machine_changed(None, on("Node-C", interface(1)))
    assert table.router_changed("NODE-C", ("192.0.2.3",)) == {SliceKey(NETWORK, "Node-C")}
    assert made(table, "Node-C").tunnel == ("192.0.2.3",)
    table.router_changed("node-c", ("192.0.2.4",))
    assert made(table, "Node-C").tunnel == (), "which of both is not known"
    table.router_changed("Node-C", ("192.0.2.5",))
    assert made(table, "Node-C").tunnel == ("192.0.2.5",)


def test_an_interface_without_number_is_in_no_slice(table: SliceTable) -> None:
    table.machine_changed(None, on(A, interface(1, vni=0)))
    assert table.slice(SliceKey(NETWORK, A)) is None
