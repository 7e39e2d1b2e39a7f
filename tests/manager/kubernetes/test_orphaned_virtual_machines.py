"""Orphaned virtual machines, which somebody else wrote, are deleted; those of living pods are not."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from contrail_config.kubernetes.kinds import virtual_machine_object
from contrail_config.kubernetes.node_buckets import node_bucket
from contrail_config.objects import VirtualMachine
from manager.kubernetes import orphaned_virtual_machines
from manager.kubernetes.orphaned_virtual_machines import OrphanedVirtualMachines
from tests.manager.kubernetes.conftest import Managed
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.writes import create
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import (
    VIRTUAL_MACHINE_KIND,
    allocated_addresses,
    stored_reasons,
    stored_virtual_machines,
)
from tests.support.virtual_machines import MISSING_NETWORK, make_virtual_machine

WITH_MAC = json.dumps([{"name": "net-a", "mac": "02:00:00:00:00:07"}])


@pytest.fixture(autouse=True)
def short_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphaned_virtual_machines, "DELAY", 0.01)


def put(server: FakeApiServer, vm: VirtualMachine) -> None:
    """Creates the object of a virtual machine, as a restored backup or a former leader does."""
    content: dict[str, Any] = msgspec.to_builtins(virtual_machine_object(vm))
    kind = {"apiVersion": VIRTUAL_MACHINE_KIND.api_version, "kind": VIRTUAL_MACHINE_KIND.kind}
    create(server.storage, VIRTUAL_MACHINE_KIND, node_bucket(vm.node), content | kind)


def orphan(pod: str, **changes: Any) -> VirtualMachine:
    """A virtual machine of a pod of the namespace `blue`."""
    made = make_virtual_machine(pod, **changes)
    return msgspec.structs.replace(made, namespace="blue", name=f"k8s__blue__{pod}")


async def served(objects: ClusterObjects, server: FakeApiServer, name: str) -> VirtualMachine:
    """The virtual machine of a new pod."""
    uid = objects.add_pod(name)
    await eventually(lambda: uid in stored_virtual_machines(server))
    return stored_virtual_machines(server)[uid]


async def test_one_without_a_pod_is_deleted_while_a_manager_runs(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        vm = await served(objects, server, "web-0")
        put(server, orphan("gone"))
        put(server, orphan("web-0"))
        await eventually(lambda: len(stored_virtual_machines(server)) == 3)
        await eventually(lambda: stored_virtual_machines(server) == {vm.uuid: vm})
        assert len(allocated_addresses(server)) == 1


async def test_one_without_a_pod_is_deleted_although_its_creation_was_missed(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        vm = await served(objects, server, "web-0")
        server.faults.reject(403, verb="watch", times=4)
        server.cut_watches()
        put(server, orphan("gone"))
        server.storage.compact()
        await eventually(lambda: stored_virtual_machines(server) == {vm.uuid: vm})


async def test_a_reason_without_a_pod_is_deleted_while_a_manager_runs(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        vm = await served(objects, server, "web-0")
        for pod in ("gone", "web-0"):
            put(server, msgspec.structs.replace(orphan(pod), interfaces=(), pending=MISSING_NETWORK))
        await eventually(lambda: not stored_reasons(server))
        assert stored_virtual_machines(server) == {vm.uuid: vm}


async def test_one_of_another_cluster_is_left_alone(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        theirs = msgspec.structs.replace(orphan("web-0"), cluster="other", name="other__blue__web-0")
        put(server, theirs)
        put(server, orphan("gone"))
        await eventually(lambda: stored_virtual_machines(server) == {theirs.uuid: theirs})


async def reported(vm: VirtualMachine, *, exists: list[bool], problems: list[list[str]]) -> list[VirtualMachine]:
    """The reports of a virtual machine whose pod is found and missing as scripted; waits for the end of the script."""
    found: list[VirtualMachine] = []
    orphans = OrphanedVirtualMachines(pod_exists=lambda _vm: exists.pop(0), problems=lambda: problems.pop(0))
    orphans.on_orphaned(found.append)
    orphans.appeared(vm)
    async with asyncio.timeout(5):
        while exists or problems:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.001)
    orphans.close()
    return found


async def test_one_of_a_living_pod_is_not_reported() -> None:
    vm = make_virtual_machine()
    assert await reported(vm, exists=[True], problems=[]) == []
    assert await reported(vm, exists=[False, True], problems=[]) == []


async def test_one_is_not_reported_while_pods_are_not_up_to_date() -> None:
    vm = make_virtual_machine()
    assert await reported(vm, exists=[False, False, True], problems=[["pods: not listed yet"]]) == []
    assert await reported(vm, exists=[False, False, False], problems=[["watch of pods: no event"], []]) == [vm]


@pytest.mark.parametrize("precedes", [True, False])
async def test_the_mac_of_a_pod_stays_its_own_beside_a_restored_predecessor(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, *, precedes: bool
) -> None:
    """Whichever of the two virtual machines of its name a manager loads first."""
    objects.add_nad("net-a", cidr="10.1.0.0/24")
    async with managed():
        former = await asking_for_mac(objects, server, "web-0")
        vm = former
        while vm is former or (vm.uuid < former.uuid) is precedes:
            objects.remove_pod("web-0")
            vm = await asking_for_mac(objects, server, "web-0")
    put(server, former)
    async with managed():
        await eventually(lambda: stored_virtual_machines(server) == {vm.uuid: vm})
        objects.add_pod("other", networks=WITH_MAC)
        await eventually(lambda: "MacAddressTaken" in reasons_on(server, "other"))
        assert stored_virtual_machines(server) == {vm.uuid: vm}


async def asking_for_mac(objects: ClusterObjects, server: FakeApiServer, name: str) -> VirtualMachine:
    uid = objects.add_pod(name, networks=WITH_MAC)
    await eventually(lambda: list(stored_virtual_machines(server)) == [uid])
    return stored_virtual_machines(server)[uid]


def reasons_on(server: FakeApiServer, pod: str) -> set[str]:
    events = server.storage.objects(Kind("", "v1", "Event", "events")).values()
    return {event["reason"] for event in events if event["involvedObject"]["name"] == pod}
