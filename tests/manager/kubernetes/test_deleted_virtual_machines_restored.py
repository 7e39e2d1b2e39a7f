"""A virtual machine that somebody deletes while its pod exists is restored at once, as it was."""

from collections import Counter

import pytest

from contrail_config.objects import VirtualMachine
from manager.controller.pod_controller import PodController
from tests.manager.kubernetes.conftest import Managed
from tests.support.cluster_objects import NETWORKS_KEY, ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.writes import create
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import (
    BLOCK_KIND,
    VIRTUAL_MACHINE_KIND,
    allocated_addresses,
    remove_virtual_machine,
    stored_networks,
    stored_virtual_machines,
    virtual_machine_history,
    virtual_machine_item,
)

WITH_MTU = {"config": '{"cniVersion": "1.0.0", "type": "contrail-k8s-cni", "mtu": 9000}'}


async def served(objects: ClusterObjects, server: FakeApiServer, name: str = "web-0") -> VirtualMachine:
    """The virtual machine of a new pod in two networks, once its status is written."""
    objects.add_nad("net-a", cidr="10.1.0.0/16")
    objects.add_nad("net-b", cidr="10.2.0.0/24,fd00:2::/64")
    uid = objects.add_pod(name, networks="net-a,net-b")
    await eventually(lambda: objects.status(name) is not None)
    return stored_virtual_machines(server)[uid]


async def wait_until_processed(objects: ClusterObjects, server: FakeApiServer) -> None:
    """Returns when the manager has processed all earlier changes."""
    uid = objects.add_pod("mark")
    await eventually(lambda: objects.status("mark") is not None)
    remove_virtual_machine(server, "mark")
    await eventually(lambda: uid in stored_virtual_machines(server))


def put_another(server: FakeApiServer, **changes: object) -> None:
    """Replaces the virtual machine by another one."""
    kept = virtual_machine_item(server, "web-0")
    remove_virtual_machine(server, "web-0")
    bucket = kept["metadata"]["namespace"]
    create(server.storage, VIRTUAL_MACHINE_KIND, bucket, {**kept, "spec": {**kept["spec"], **changes}})


def is_there(server: FakeApiServer, vm: VirtualMachine) -> bool:
    """Whether the virtual machine exists; asserts that it is unchanged if it does."""
    found = stored_virtual_machines(server).get(vm.uuid)
    assert found in (None, vm)
    return found is not None


def requests_since(server: FakeApiServer, since: int) -> Counter[str]:
    """Requests since then, except periodic ones and events, which may come after what they report."""
    ignored = ("leases", "customresourcedefinitions", "events")
    return Counter(one for one in server.requests[since:] if not one.endswith(ignored))


async def test_a_restore_takes_one_request(managed: Managed, objects: ClusterObjects, server: FakeApiServer) -> None:
    async with managed():
        vm = await served(objects, server)
        given, before = allocated_addresses(server), len(server.requests)
        for _ in range(3):
            remove_virtual_machine(server, "web-0")
            await eventually(is_there, server, vm)
        await eventually(lambda: requests_since(server, before) == {"create virtualmachines": 3})
        assert allocated_addresses(server) == given


async def test_the_restored_object_is_complete(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """Including the labels by which agents find it."""
    async with managed():
        vm = await served(objects, server)
        before = virtual_machine_item(server, "web-0")
        remove_virtual_machine(server, "web-0")
        await eventually(is_there, server, vm)
        after = virtual_machine_item(server, "web-0")
        for key in ("namespace", "name", "labels"):
            assert after["metadata"][key] == before["metadata"][key]
        assert after["status"] == before["status"]


async def test_many_deleted_at_once_are_restored(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        vms = [await served(objects, server)]
        for number in range(1, 300):
            objects.add_pod(f"web-{number}", networks="net-a,net-a")
        await eventually(lambda: len(stored_virtual_machines(server)) == 300)
        vms = list(stored_virtual_machines(server).values())
        for vm in vms:
            remove_virtual_machine(server, vm.pod)
        await eventually(lambda: len(stored_virtual_machines(server)) == 300)
        assert all(is_there(server, vm) for vm in vms)


class TestRestoredUnchanged:
    """An assignment is final, whatever a new pod would get now."""

    async def test_after_its_network_got_another_mtu(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer
    ) -> None:
        async with managed():
            vm = await served(objects, server)
            objects.change_nad("net-a", {"spec": WITH_MTU})
            await eventually(lambda: 9000 in {network.mtu for network in stored_networks(server).values()})
            objects.add_pod("web-1", networks="net-a")
            await eventually(lambda: objects.status("web-1") is not None)
            remove_virtual_machine(server, "web-0")
            await eventually(is_there, server, vm)
            assert {one.interfaces[1].mtu for one in stored_virtual_machines(server).values()} == {1500, 9000}

    async def test_after_its_network_was_retired(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer
    ) -> None:
        async with managed():
            vm = await served(objects, server)
            objects.remove_nad("net-a")
            await wait_until_processed(objects, server)
            remove_virtual_machine(server, "web-0")
            await eventually(is_there, server, vm)

    async def test_after_its_annotation_was_changed(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer
    ) -> None:
        async with managed():
            vm = await served(objects, server)
            objects.change_pod("web-0", {"metadata": {"annotations": {NETWORKS_KEY: "net-b"}}})
            await wait_until_processed(objects, server)
            remove_virtual_machine(server, "web-0")
            await eventually(is_there, server, vm)

    async def test_after_its_addresses_were_deleted_too(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer
    ) -> None:
        """While no manager ran. The addresses of the new assignment are allocated."""
        async with managed():
            vm = await served(objects, server)
        for _, name in list(server.storage.objects(BLOCK_KIND)):
            server.remove(BLOCK_KIND, name, namespace="")
        remove_virtual_machine(server, "web-0")
        async with managed():
            await eventually(lambda: vm.uuid in stored_virtual_machines(server))
            made = stored_virtual_machines(server)[vm.uuid]
            assert [one.uuid for one in made.interfaces] == [one.uuid for one in vm.interfaces]
            addresses = {address.address for one in made.interfaces for address in one.addresses}
            assert addresses <= {address for _, address in allocated_addresses(server)}
            await eventually(lambda: all(address in (objects.status("web-0") or "") for address in addresses))


class TestReplaced:
    """Somebody may create another virtual machine in place of the deleted one."""

    async def test_a_changed_one_of_the_same_uuid_is_replaced(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer
    ) -> None:
        async with managed():
            vm = await served(objects, server)
            put_another(server, node="node-2")
            await eventually(lambda: stored_virtual_machines(server).get(vm.uuid) == vm)

    async def test_one_of_another_uuid_is_replaced(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer
    ) -> None:
        async with managed():
            vm = await served(objects, server)
            put_another(server, uuid="another")
            await eventually(lambda: "another" not in stored_virtual_machines(server) and is_there(server, vm))


class TestRestoredDespiteFaults:
    """Transient faults delay a restore."""

    async def test_while_writes_fail(self, managed: Managed, objects: ClusterObjects, server: FakeApiServer) -> None:
        async with managed():
            vm = await served(objects, server)
            server.faults.reject(500, verb="create", times=3)
            remove_virtual_machine(server, "web-0")
            await eventually(is_there, server, vm)

    async def test_with_a_lost_answer(self, managed: Managed, objects: ClusterObjects, server: FakeApiServer) -> None:
        async with managed():
            vm = await served(objects, server)
            server.faults.lost_responses_to = ["virtualmachines"]
            remove_virtual_machine(server, "web-0")
            await eventually(is_there, server, vm)
            await wait_until_processed(objects, server)
            assert virtual_machine_history(server, vm.uuid)[-1] == vm

    async def test_while_the_watch_is_cut(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer
    ) -> None:
        async with managed():
            vm = await served(objects, server)
            remove_virtual_machine(server, "web-0")
            server.cut_watches()
            await eventually(is_there, server, vm)

    async def test_after_the_server_lost_its_history(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer
    ) -> None:
        """Virtual machines are then listed and compared with the expected ones."""
        async with managed():
            vm = await served(objects, server)
            await wait_until_processed(objects, server)
            others = stored_virtual_machines(server).keys() - {vm.uuid}
            remove_virtual_machine(server, "web-0")
            before = len(server.requests)
            server.forget_history()
            await eventually(is_there, server, vm)
            assert stored_virtual_machines(server).keys() == others | {vm.uuid}
            assert requests_since(server, before)["get virtualmachines"] == 1

    async def test_while_watching_is_denied(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with managed():
            vm = await served(objects, server)
            server.faults.reject(403, verb="watch", times=8)
            server.end_watches()
            await eventually(lambda: "GET /apis/opencontrail.org/v1alpha1/virtualmachines" in caplog.text)
            remove_virtual_machine(server, "web-0")
            await eventually(is_there, server, vm)

    async def test_if_deleted_while_a_manager_loads(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The watch begins at a version before the list."""
        async with managed():
            vm = await served(objects, server)
        load = PodController.load

        async def load_and_delete(self: PodController) -> None:
            await load(self)
            remove_virtual_machine(server, "web-0")

        monkeypatch.setattr(PodController, "load", load_and_delete)
        before = len(server.requests)
        async with managed():
            await eventually(is_there, server, vm)
            assert requests_since(server, before)["create virtualmachines"] == 1
