"""Machines as `kubectl` and the garbage collector meet them."""

import msgspec
import pytest

from contrail_config.errors import ConflictError, NotFoundError, StoreUnavailableError
from contrail_config.kubernetes.kinds import NODE_LABEL, node_label
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import interface_uuid, virtual_machine_name
from contrail_config.store import ChangeType, WatchStart
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.kept_in_cluster import MACHINE_KIND, given_addresses
from tests.support.machines import make_machine
from tests.support.networks import give, make_network, new_owner, start_pod


async def caches(manager: KubernetesStore, server: FakeApiServer, uuid: str, interfaces: list[str]) -> bool:
    """Whether the store caches the deleted virtual machine or its interfaces: then it sends other requests."""
    server.requests.clear()
    await manager.release(interfaces, hold=0.0)  # reads the virtual machines of cached interfaces
    with pytest.raises(NotFoundError):
        await manager.virtual_machine(uuid)  # gets a cached one by name, and lists others by label
    return [request for request in server.requests if "virtualmachines" in request] != ["list virtualmachines"]


async def test_a_machine_is_named_labelled_and_owned_by_its_pod(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    machine = make_machine("web", node="worker-7")
    await manager.put_virtual_machine(machine)
    item = server.storage.objects(MACHINE_KIND)["default", "web"]
    assert item["metadata"]["labels"] == {"opencontrail.org/uuid": machine.uuid, "opencontrail.org/node": "worker-7"}
    assert item["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": machine.uuid}
    ]
    (interface,) = machine.interfaces
    assert item["status"] == {
        "interfaces": 1,
        "addresses": interface.addresses[0].address,
        "networks": interface.network[2],
    }


def test_a_long_node_name_has_a_label_of_its_own() -> None:
    long = "a" * 80
    assert len(node_label(long)) <= 63
    assert node_label(long) != node_label(long + "b")
    assert node_label("worker-1") == "worker-1"


async def test_a_machine_that_went_with_its_pod_still_frees_its_addresses(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    network = await manager.put_network(make_network())
    machine = await start_pod(manager, [network, network])
    server.storage.remove(MACHINE_KIND, server.storage.objects(MACHINE_KIND)["default", "p1"])
    await manager.delete_virtual_machine(machine.uuid)
    assert given_addresses(server) == {}


async def test_deleting_a_machine_leaves_its_successor_alone(open_manager: OpenManager) -> None:
    """Another manager deleted the old one and wrote the new one of the same name already."""
    first, second = await open_manager(), await open_manager()
    old, new = make_machine("web"), make_machine("web")
    await first.put_virtual_machine(old)
    await second.delete_virtual_machine(old.uuid)
    await second.put_virtual_machine(new)
    await first.delete_virtual_machine(old.uuid)
    assert await first.virtual_machines() == [new]


async def test_a_delete_that_could_not_free_addresses_frees_them_when_it_is_tried_again(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    network = await manager.put_network(make_network())
    machine = await start_pod(manager, [network])
    server.faults.refuse(403, verb="update")
    with pytest.raises(StoreUnavailableError):
        await manager.delete_virtual_machine(machine.uuid)
    await manager.delete_virtual_machine(machine.uuid)
    assert given_addresses(server) == {}


async def test_a_machine_that_could_not_be_written_is_known_until_its_addresses_are_released(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    """What is known must not grow with the pods that come and go while the server takes no machine."""
    network = await manager.put_network(make_network())
    await give(manager, network, kept := new_owner())
    server.faults.refuse(403, verb="create")  # of the machine: the block is there
    with pytest.raises(StoreUnavailableError):
        await start_pod(manager, [network, network], uid=(uid := new_owner()))
    owners = [interface_uuid(uid, 0), interface_uuid(uid, 1)]
    await manager.release(owners, hold=0.0)
    assert list(given_addresses(server).values()) == [kept]
    assert not await caches(manager, server, uid, owners)


async def test_a_machine_that_went_with_its_pod_is_known_until_it_is_deleted(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    network = await manager.put_network(make_network())
    machine = await start_pod(manager, [network, network])
    server.storage.remove(MACHINE_KIND, server.storage.objects(MACHINE_KIND)["default", "p1"])
    await manager.release([machine.interfaces[0].uuid], hold=0.0)
    await manager.delete_virtual_machine(machine.uuid)
    assert given_addresses(server) == {}
    assert not await caches(manager, server, machine.uuid, [interface.uuid for interface in machine.interfaces])


async def test_a_machine_whose_write_was_not_answered_keeps_its_addresses_until_it_is_deleted(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    network = await manager.put_network(make_network())
    server.faults.lost_answers_of = [MACHINE_KIND.plural]
    with pytest.raises(StoreUnavailableError):
        await start_pod(manager, [network], uid=(uid := new_owner()))
    await manager.release([interface_uuid(uid, 0)], hold=0.0)
    assert len(given_addresses(server)) == 1
    await manager.delete_virtual_machine(uid)
    assert given_addresses(server) == {}
    assert not await caches(manager, server, uid, [interface_uuid(uid, 0)])


async def test_a_uuid_is_in_one_place(manager: KubernetesStore) -> None:
    machine = make_machine("one")
    await manager.put_virtual_machine(machine)
    moved = msgspec.structs.replace(machine, pod="two", name=virtual_machine_name("k8s", "default", "two"))
    with pytest.raises(ConflictError, match="already exists as default/one"):
        await manager.put_virtual_machine(moved)


async def test_labels_that_others_set_stay_and_are_no_change(manager: KubernetesStore, server: FakeApiServer) -> None:
    machine = make_machine("web")
    await manager.put_virtual_machine(machine)
    async with manager.watch_virtual_machines(start=WatchStart.NOW) as changes:
        item = server.storage.objects(MACHINE_KIND)["default", "web"]
        labels = {**item["metadata"]["labels"], "team": "blue"}
        server.storage.put(MACHINE_KIND, {**item, "metadata": {**item["metadata"], "labels": labels}})
        moved = msgspec.structs.replace(machine, node="worker-9")
        await manager.put_virtual_machine(moved)
        change = await anext(changes)
        assert (change.type, change.object) == (ChangeType.MODIFIED, moved)
    kept = server.storage.objects(MACHINE_KIND)["default", "web"]["metadata"]["labels"]
    assert kept == {**labels, NODE_LABEL: "worker-9"}


async def test_an_agent_watches_its_own_machines_and_reads_nothing_else(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    manager, agent = await open_manager(), await open_manager()
    await manager.put_virtual_machine(make_machine("there", node="worker-2"))
    server.requests.clear()
    async with agent.watch_virtual_machines(node="worker-1") as changes:
        assert (await anext(changes)).type is ChangeType.SYNCED
        machine = make_machine("here", node="worker-1")
        await manager.put_virtual_machine(machine)
        assert (await anext(changes)).object == machine
    server.requests.remove("create virtualmachines")
    assert server.requests == ["list virtualmachines", "watch virtualmachines"]


async def test_a_machine_that_cannot_be_read_keeps_no_other_from_being_told(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    metadata = {"name": "bad", "namespace": "default", "uid": "u"}
    server.storage.put(MACHINE_KIND, {"metadata": metadata, "spec": {}})
    machine = make_machine("good")
    await manager.put_virtual_machine(machine)
    async with manager.watch_virtual_machines() as changes:
        assert (await anext(changes)).object == machine
        assert (await anext(changes)).type is ChangeType.SYNCED
