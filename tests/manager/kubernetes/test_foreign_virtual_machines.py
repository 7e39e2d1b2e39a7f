"""Virtual machines that no manager wrote change nothing; those of pods that are gone are deleted by the manager."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from contrail_config.kubernetes.kinds import virtual_machine_object
from contrail_config.kubernetes.node_buckets import node_bucket
from contrail_config.objects import VirtualMachine, interface_uuid
from tests.manager.kubernetes.conftest import Managed
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.kinds import NAMESPACES
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.writes import create
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import (
    VIRTUAL_MACHINE_KIND,
    allocated_addresses,
    stored_virtual_machines,
    virtual_machine_item,
)
from tests.support.virtual_machines import make_virtual_machine

THIEF = "aaaaaaaa-0000-4000-8000-00000000000f"


def put(server: FakeApiServer, vm: VirtualMachine, *, namespace: str, **changes: Any) -> None:
    """Creates the object of a virtual machine in any namespace."""
    content = msgspec.to_builtins(virtual_machine_object(vm))
    kind = {"apiVersion": VIRTUAL_MACHINE_KIND.api_version, "kind": VIRTUAL_MACHINE_KIND.kind}
    create(server.storage, VIRTUAL_MACHINE_KIND, namespace, {**content, **kind, "spec": {**content["spec"], **changes}})


async def served(objects: ClusterObjects, server: FakeApiServer, name: str) -> VirtualMachine:
    """The virtual machine of a new pod."""
    uid = objects.add_pod(name, networks="net-a")
    await eventually(lambda: uid in stored_virtual_machines(server))
    return stored_virtual_machines(server)[uid]


@contextlib.asynccontextmanager
async def with_network(managed: Managed, objects: ClusterObjects) -> AsyncIterator[None]:
    """Runs a manager with one NAD."""
    objects.add_nad("net-a", cidr="10.1.0.0/29")
    async with managed():
        yield


async def test_an_object_with_a_malformed_uuid_does_not_end_a_manager(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with with_network(managed, objects):
        vm = await served(objects, server, "web-0")
    bad = make_virtual_machine("bad")
    interfaces = [{**msgspec.to_builtins(one), "uuid": "not-a-uuid"} for one in bad.interfaces]
    put(server, bad, namespace="blue", uuid="not-a-uuid", interfaces=interfaces)
    put(server, make_virtual_machine("worse"), namespace="blue", interfaces="none")
    async with managed():
        await eventually(lambda: objects.status("web-0") is not None)
        assert stored_virtual_machines(server) == {vm.uuid: vm}
        await served(objects, server, "web-1")


async def test_a_copy_of_a_pods_interfaces_in_a_tenants_namespace_shares_no_address(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """It would be believed after a restart: the address would be allocated to the copy when its owner leaves."""
    async with with_network(managed, objects):
        victim = await served(objects, server, "victim")
    thief = objects.add_pod("thief", networks="net-a")
    stolen = [msgspec.structs.replace(one, uuid=interface_uuid(thief, n)) for n, one in enumerate(victim.interfaces)]
    copy = msgspec.structs.replace(make_virtual_machine("thief", uid=thief), namespace="blue", name="k8s__blue__thief")
    put(server, copy, namespace="blue", interfaces=msgspec.to_builtins(stolen))
    async with managed():
        await eventually(lambda: thief in stored_virtual_machines(server))
        machines = stored_virtual_machines(server)
        assert machines[victim.uuid] == victim
        used = [a.address for vm in machines.values() for one in vm.interfaces for a in one.addresses]
        assert len(used) == len(set(used)) == 4
        assert sorted(address for _, address in allocated_addresses(server)) == sorted(used)


async def test_virtual_machines_of_pods_that_are_gone_are_deleted_at_start(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with with_network(managed, objects):
        kept, gone = await served(objects, server, "web-0"), await served(objects, server, "web-1")
    objects.remove_pod("web-1")
    async with managed():
        await eventually(lambda: stored_virtual_machines(server) == {kept.uuid: kept})
        addresses = {address.address for one in gone.interfaces for address in one.addresses}
        await eventually(lambda: addresses.isdisjoint(address for _, address in allocated_addresses(server)))


async def test_virtual_machines_of_pods_that_are_gone_are_deleted_after_a_new_list(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """Pods were deleted, and one recreated, while no watch was open and the history was lost."""
    async with with_network(managed, objects):
        kept = await served(objects, server, "web-0")
        for name in ("web-1", "web-2"):
            await served(objects, server, name)
        server.faults.reject(410, verb="watch", times=3)
        server.cut_watches()
        for name in ("web-1", "web-2"):
            objects.remove_pod(name)
        recreated = objects.add_pod("web-2", networks="net-a")
        server.storage.compact()
        await eventually(lambda: stored_virtual_machines(server).keys() == {kept.uuid, recreated})


async def test_the_pods_own_one_of_two_virtual_machines_of_its_name_is_kept(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """A backup was restored, or a former leader wrote one too late."""
    async with with_network(managed, objects):
        vms = [await served(objects, server, f"web-{number}") for number in range(2)]
    strays = []
    for vm in vms:
        stray = make_virtual_machine(vm.pod, node=vm.node, interfaces=())
        strays.append(msgspec.structs.replace(stray, namespace="blue", name=vm.name))
    for stray in strays:
        put(server, stray, namespace=node_bucket(stray.node))
    objects.remove_pod("web-1")
    async with managed():
        await eventually(lambda: stored_virtual_machines(server) == {vms[0].uuid: vms[0]})


async def test_a_deleted_bucket_is_created_again_with_its_virtual_machines(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with with_network(managed, objects):
        vm = await served(objects, server, "web-0")
        item, bucket = virtual_machine_item(server, "web-0"), node_bucket(vm.node)
        server.remove(NAMESPACES, bucket, namespace="")
        server.storage.remove(VIRTUAL_MACHINE_KIND, item)
        await eventually(lambda: stored_virtual_machines(server) == {vm.uuid: vm})
        assert ("", bucket) in server.storage.objects(NAMESPACES)


async def test_a_pod_finds_its_node_again_after_it_was_written_for_another_one(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """The virtual machine moves with its addresses; etcd was restored, or a node was renamed."""
    async with with_network(managed, objects):
        vm = await served(objects, server, "web-0")
    objects.change_pod("web-0", {"spec": {"nodeName": "node-9"}})
    moved = msgspec.structs.replace(vm, node="node-9")
    async with managed():
        await eventually(lambda: stored_virtual_machines(server) == {vm.uuid: moved})
        await eventually(lambda: len(server.storage.objects(VIRTUAL_MACHINE_KIND)) == 1)
        assert virtual_machine_item(server, "web-0")["metadata"]["namespace"] == node_bucket("node-9")
