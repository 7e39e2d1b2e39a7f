"""Rolling upgrade and rollback: two releases share a store, and neither loses fields of the other.

The next release has one more field in every struct, nested ones included.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from contrail_config.objects import Route, Subnet, VirtualMachine, VirtualNetwork
from contrail_config.store import ChangeType, Store
from tests.support.next_release import (
    ABSENT,
    WRITTEN,
    StoredJson,
    next_definitions,
    read_by_next,
    stored_json,
    written_by_next,
)
from tests.support.stores import ServedStore
from tests.support.virtual_networks import make_network, start_pod


@pytest.fixture
async def stored(store: Store, tmp_path: Path) -> AsyncIterator[StoredJson]:
    """The stored JSON, in a cluster whose definitions are those of the next release already."""
    if isinstance(store, ServedStore):
        async with next_definitions(store.client):
            yield stored_json(store, tmp_path)
    else:
        yield stored_json(store, tmp_path)


def wide_network() -> VirtualNetwork:
    return make_network("wide", "10.1.0.0/24", "fd00:1::/64", routes=(Route("10.9.0.0/16", "10.1.0.3"),))


async def write_as_next(stored: StoredJson, item: VirtualNetwork | VirtualMachine) -> None:
    found = await stored.read(type(item), item.uuid)
    await stored.write(type(item), item.uuid, written_by_next(found, type(item)))


async def test_the_next_release_reads_what_this_one_writes(store: Store, stored: StoredJson) -> None:
    network = await store.put_network(wide_network())
    virtual_machine = await start_pod(store, [network])
    assert set(read_by_next(await stored.read(VirtualNetwork, network.uuid), VirtualNetwork)) == {ABSENT}
    assert set(read_by_next(await stored.read(VirtualMachine, virtual_machine.uuid), VirtualMachine)) == {ABSENT}


async def test_fields_of_the_next_release_are_ignored_on_reading(store: Store, stored: StoredJson) -> None:
    network = await store.put_network(wide_network())
    virtual_machine = await start_pod(store, [network])
    await write_as_next(stored, network)
    await write_as_next(stored, virtual_machine)
    assert await store.networks() == [network]
    assert await store.virtual_machine(virtual_machine.uuid) == virtual_machine
    assert await store.virtual_machines(node=virtual_machine.node) == [virtual_machine]
    async with store.watch_virtual_machines() as changes:
        change = await anext(changes)
    assert (change.type, change.object) == (ChangeType.ADDED, virtual_machine)


async def test_a_changed_network_keeps_fields_of_the_next_release(store: Store, stored: StoredJson) -> None:
    network = await store.put_network(wide_network())
    await write_as_next(stored, network)
    await store.put_network(msgspec.structs.replace(network, mtu=9000, retired=True))
    found = await stored.read(VirtualNetwork, network.uuid)
    assert (found["mtu"], found["retired"]) == (9000, True)
    assert read_by_next(found, VirtualNetwork) == [WRITTEN] * 4, "of the network, two subnets and a route"


async def test_an_added_subnet_leaves_the_fields_of_the_others(store: Store, stored: StoredJson) -> None:
    network = await store.put_network(wide_network())
    await write_as_next(stored, network)
    subnets = (Subnet("10.0.0.0/24", "10.0.0.1"), *network.subnets)
    await store.put_network(msgspec.structs.replace(network, subnets=subnets))
    found = await stored.read(VirtualNetwork, network.uuid)
    added = {subnet["cidr"]: subnet.get("added", ABSENT) for subnet in found["subnets"]}
    assert added == {"10.0.0.0/24": ABSENT, "10.1.0.0/24": WRITTEN, "fd00:1::/64": WRITTEN}


async def test_a_changed_virtual_machine_keeps_fields_of_the_next_release(store: Store, stored: StoredJson) -> None:
    network = await store.put_network(wide_network())
    virtual_machine = await start_pod(store, [network, network])
    await write_as_next(stored, virtual_machine)
    first, second = virtual_machine.interfaces
    changed = msgspec.structs.replace(
        virtual_machine, interfaces=(msgspec.structs.replace(first, mtu=9000, addresses=()), second)
    )
    await store.put_virtual_machine(changed)
    assert await store.virtual_machine(virtual_machine.uuid) == changed
    found = await stored.read(VirtualMachine, virtual_machine.uuid)
    assert set(read_by_next(found, VirtualMachine)) == {WRITTEN}


async def test_a_virtual_machine_that_changes_its_node_keeps_fields_of_the_next_release(
    store: Store, stored: StoredJson
) -> None:
    network = await store.put_network(wide_network())
    virtual_machine = await start_pod(store, [network])
    await write_as_next(stored, virtual_machine)
    await store.put_virtual_machine(msgspec.structs.replace(virtual_machine, node="worker-9"))
    found = await stored.read(VirtualMachine, virtual_machine.uuid)
    assert set(read_by_next(found, VirtualMachine)) == {WRITTEN}


async def test_an_unchanged_object_is_not_written_for_unknown_fields(store: Store, stored: StoredJson) -> None:
    network = await store.put_network(wide_network())
    virtual_machine = await start_pod(store, [network])
    await write_as_next(stored, network)
    await write_as_next(stored, virtual_machine)
    before = await stored.read(VirtualNetwork, network.uuid), await stored.read(VirtualMachine, virtual_machine.uuid)
    await store.put_network(network)
    await store.put_virtual_machine(virtual_machine)
    assert before == (
        await stored.read(VirtualNetwork, network.uuid),
        await stored.read(VirtualMachine, virtual_machine.uuid),
    )
