"""Virtual machines: unique by uuid and by name, stored completely."""

import msgspec
import pytest

from contrail_config.errors import ConflictError, NotFoundError
from contrail_config.objects import DefaultGateway, ForwardingMode, InterfaceAddress, Route
from contrail_config.store import Store
from tests.support.stores import OpenStore
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import interface_in, make_network, new_owner


async def test_a_virtual_machine_is_stored_completely(store: Store, open_store: OpenStore) -> None:
    network = make_network(mtu=9000, routes=(Route("10.9.0.0/16", "10.1.0.3"), Route("10.8.0.0/16")))
    addresses = (
        InterfaceAddress("10.1.0.7", 24, gateway="10.1.0.9", dns=("10.96.0.10",), subnet_gateway="10.1.0.1"),
        InterfaceAddress("fd00::7", 64),
    )
    interface = msgspec.structs.replace(
        interface_in(network, new_owner(), *addresses),
        nad="default/left",
        config_name="left-net",
        interface="left0",
        attachment="left0",
        default_gw=DefaultGateway.IPV6,
        vni=2**24 - 1,
        ip_fabric_snat=True,
        ip_fabric_forwarding=True,
        forwarding_mode=ForwardingMode.L3,
    )
    virtual_machine = make_virtual_machine(
        interfaces=(interface, interface_in(network, new_owner())), config_hash="f00d"
    )
    await store.put_virtual_machine(virtual_machine)
    assert await store.virtual_machine(virtual_machine.uuid) == virtual_machine
    await store.close()
    assert await (await open_store()).virtual_machine(virtual_machine.uuid) == virtual_machine


async def test_a_missing_virtual_machine_is_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError, match="no-such-uuid"):
        await store.virtual_machine("no-such-uuid")


async def test_a_virtual_machine_is_replaced_completely(store: Store) -> None:
    virtual_machine = make_virtual_machine()
    await store.put_virtual_machine(virtual_machine)
    smaller = msgspec.structs.replace(virtual_machine, interfaces=(), node="worker-9")
    await store.put_virtual_machine(smaller)
    assert await store.virtual_machines() == [smaller]


async def test_virtual_machines_are_listed_by_name_and_node(store: Store) -> None:
    virtual_machines = [make_virtual_machine(pod, node=node) for pod, node in [("c", "n1"), ("a", "n2"), ("b", "n1")]]
    for virtual_machine in virtual_machines:
        await store.put_virtual_machine(virtual_machine)
    assert [virtual_machine.pod for virtual_machine in await store.virtual_machines()] == ["a", "b", "c"]
    assert [virtual_machine.pod for virtual_machine in await store.virtual_machines(node="n1")] == ["b", "c"]
    assert await store.virtual_machines(node="n3") == []


async def test_a_recreated_pod_conflicts_until_the_old_virtual_machine_is_deleted(store: Store) -> None:
    old, new = make_virtual_machine("web"), make_virtual_machine("web")
    await store.put_virtual_machine(old)
    with pytest.raises(ConflictError, match=rf"{old.name}: already exists with uuid {old.uuid}") as caught:
        await store.put_virtual_machine(new)
    assert caught.value.holder == old.uuid
    assert await store.virtual_machines() == [old]
    await store.delete_virtual_machine(old.uuid)
    await store.put_virtual_machine(new)
    assert await store.virtual_machines() == [new]


async def test_a_virtual_machine_cannot_take_the_name_of_another_one(store: Store) -> None:
    one, other = make_virtual_machine("one"), make_virtual_machine("other")
    await store.put_virtual_machine(one)
    await store.put_virtual_machine(other)
    with pytest.raises(ConflictError, match=one.name):
        await store.put_virtual_machine(msgspec.structs.replace(other, name=one.name))
    assert await store.virtual_machine(other.uuid) == other


async def test_deleting_a_virtual_machine_is_idempotent(store: Store) -> None:
    virtual_machine = make_virtual_machine()
    await store.put_virtual_machine(virtual_machine)
    await store.delete_virtual_machine(virtual_machine.uuid)
    await store.delete_virtual_machine(virtual_machine.uuid)
    assert await store.virtual_machines() == []
