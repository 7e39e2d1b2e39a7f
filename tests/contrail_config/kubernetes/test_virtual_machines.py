"""Virtual machines as objects: metadata, the cache of locations, and watches."""

import msgspec
import pytest

from contrail_config.errors import ConflictError, NotFoundError, StoreUnavailableError
from contrail_config.kubernetes.kinds import label_value
from contrail_config.kubernetes.node_buckets import node_bucket
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import interface_uuid, virtual_machine_name
from contrail_config.store import ChangeType, WatchStart
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.stored_objects import (
    VIRTUAL_MACHINE_KIND,
    allocated_addresses,
    remove_virtual_machine,
    virtual_machine_item,
)
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod


async def caches(manager: KubernetesStore, server: FakeApiServer, uuid: str, interfaces: list[str]) -> bool:
    """Whether the store caches the deleted virtual machine or its interfaces: then it sends other requests."""
    server.requests.clear()
    await manager.release(interfaces, hold=0.0)  # reads the virtual machines of cached interfaces
    with pytest.raises(NotFoundError):
        await manager.virtual_machine(uuid)  # gets a cached one by name, and lists others by label
    return [request for request in server.requests if "virtualmachines" in request] != ["list virtualmachines"]


async def test_a_virtual_machine_is_named_by_its_uuid_and_labelled_by_node_and_pod(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    virtual_machine = make_virtual_machine("web", node="worker-7")
    await manager.put_virtual_machine(virtual_machine)
    item = server.storage.objects(VIRTUAL_MACHINE_KIND)[node_bucket("worker-7"), virtual_machine.uuid]
    assert item["metadata"]["labels"] == {
        "opencontrail.org/node": "worker-7",
        "opencontrail.org/namespace": "default",
        "opencontrail.org/pod": "web",
    }
    assert "ownerReferences" not in item["metadata"]
    (interface,) = virtual_machine.interfaces
    assert item["status"] == {
        "interfaces": 1,
        "addresses": interface.addresses[0].address,
        "networks": interface.network[2],
    }


def test_a_long_name_has_a_unique_label() -> None:
    long = "a" * 80
    assert len(label_value(long)) <= 63
    assert label_value(long) != label_value(long + "b")
    assert label_value("worker-1") == "worker-1"


async def test_a_virtual_machine_deleted_by_others_still_releases_its_addresses(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    network = await manager.put_network(make_network())
    virtual_machine = await start_pod(manager, [network, network])
    remove_virtual_machine(server, "p1", namespace="default")
    await manager.delete_virtual_machine(virtual_machine.uuid)
    assert allocated_addresses(server) == {}


async def test_deleting_a_virtual_machine_does_not_delete_its_successor(open_manager: OpenManager) -> None:
    """Another manager has already deleted the old one and written a new one with the same name."""
    first, second = await open_manager(), await open_manager()
    old, new = make_virtual_machine("web"), make_virtual_machine("web")
    await first.put_virtual_machine(old)
    await second.delete_virtual_machine(old.uuid)
    await second.put_virtual_machine(new)
    await first.delete_virtual_machine(old.uuid)
    assert await first.virtual_machines() == [new]


async def test_a_retried_delete_releases_the_addresses(manager: KubernetesStore, server: FakeApiServer) -> None:
    network = await manager.put_network(make_network())
    virtual_machine = await start_pod(manager, [network])
    server.faults.reject(403, verb="update")
    with pytest.raises(StoreUnavailableError):
        await manager.delete_virtual_machine(virtual_machine.uuid)
    await manager.delete_virtual_machine(virtual_machine.uuid)
    assert allocated_addresses(server) == {}


async def test_an_unwritten_virtual_machine_is_cached_until_its_addresses_are_released(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    """The cache must not grow with the pods that come and go while the server rejects virtual machines."""
    network = await manager.put_network(make_network())
    await allocate_one(manager, network, stored := new_owner())
    server.faults.reject(403, verb="create")  # of the virtual machine: the block exists
    with pytest.raises(StoreUnavailableError):
        await start_pod(manager, [network, network], uid=(uid := new_owner()))
    owners = [interface_uuid(uid, 0), interface_uuid(uid, 1)]
    await manager.release(owners, hold=0.0)
    assert list(allocated_addresses(server).values()) == [stored]
    assert not await caches(manager, server, uid, owners)


async def test_a_virtual_machine_deleted_by_others_is_cached_until_it_is_deleted_here(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    network = await manager.put_network(make_network())
    virtual_machine = await start_pod(manager, [network, network])
    remove_virtual_machine(server, "p1", namespace="default")
    await manager.release([virtual_machine.interfaces[0].uuid], hold=0.0)
    await manager.delete_virtual_machine(virtual_machine.uuid)
    assert allocated_addresses(server) == {}
    assert not await caches(
        manager, server, virtual_machine.uuid, [interface.uuid for interface in virtual_machine.interfaces]
    )


async def test_a_virtual_machine_written_without_response_keeps_its_addresses_until_deleted(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    network = await manager.put_network(make_network())
    server.faults.lost_responses_to = [VIRTUAL_MACHINE_KIND.plural]
    with pytest.raises(StoreUnavailableError):
        await start_pod(manager, [network], uid=(uid := new_owner()))
    await manager.release([interface_uuid(uid, 0)], hold=0.0)
    assert len(allocated_addresses(server)) == 1
    await manager.delete_virtual_machine(uid)
    assert allocated_addresses(server) == {}
    assert not await caches(manager, server, uid, [interface_uuid(uid, 0)])


async def test_a_uuid_has_one_name(manager: KubernetesStore) -> None:
    virtual_machine = make_virtual_machine("one")
    await manager.put_virtual_machine(virtual_machine)
    moved = msgspec.structs.replace(virtual_machine, pod="two", name=virtual_machine_name("k8s", "default", "two"))
    with pytest.raises(ConflictError, match="already exists as k8s__default__one"):
        await manager.put_virtual_machine(moved)


async def test_labels_of_others_are_preserved_and_are_no_change(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    virtual_machine = make_virtual_machine("web")
    await manager.put_virtual_machine(virtual_machine)
    async with manager.watch_virtual_machines(start=WatchStart.NOW) as changes:
        item = virtual_machine_item(server, "web", namespace="default")
        labels = {**item["metadata"]["labels"], "team": "blue"}
        server.storage.put(VIRTUAL_MACHINE_KIND, {**item, "metadata": {**item["metadata"], "labels": labels}})
        changed = msgspec.structs.replace(virtual_machine, config_hash="cafe")
        await manager.put_virtual_machine(changed)
        change = await anext(changes)
        assert (change.type, change.object) == (ChangeType.MODIFIED, changed)
    assert virtual_machine_item(server, "web", namespace="default")["metadata"]["labels"] == labels


async def test_an_agent_reads_only_the_virtual_machines_of_its_node(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    manager, agent = await open_manager(), await open_manager()
    await manager.put_virtual_machine(make_virtual_machine("there", node="worker-2"))
    server.requests.clear()
    async with agent.watch_virtual_machines(node="worker-1") as changes:
        assert (await anext(changes)).type is ChangeType.SYNCED
        virtual_machine = make_virtual_machine("here", node="worker-1")
        await manager.put_virtual_machine(virtual_machine)
        assert (await anext(changes)).object == virtual_machine
    server.requests.remove("create virtualmachines")
    assert server.requests == ["list virtualmachines", "watch virtualmachines"]


async def test_an_invalid_virtual_machine_does_not_block_others(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    server.put(VIRTUAL_MACHINE_KIND, new_owner(), namespace=node_bucket("worker-1"), spec={})
    virtual_machine = make_virtual_machine("good")
    await manager.put_virtual_machine(virtual_machine)
    async with manager.watch_virtual_machines() as changes:
        assert (await anext(changes)).object == virtual_machine
        assert (await anext(changes)).type is ChangeType.SYNCED
    assert await manager.virtual_machines() == [virtual_machine]
