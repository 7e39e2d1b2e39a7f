"""The server executed a write and its answer was lost: the written object is found and kept."""

from collections.abc import AsyncIterator

import pytest

from tests.support.cluster_objects import ClusterObjects
from tests.support.crashable_manager import CrashableManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import (
    allocated_addresses,
    remove_virtual_machine,
    stored_networks,
    stored_virtual_machines,
    virtual_machine_history,
)


@pytest.fixture
async def life(server: FakeApiServer, objects: ClusterObjects) -> AsyncIterator[CrashableManager]:
    """A ready manager, whose store is on the server."""
    life = CrashableManager(server)
    await life.start()
    await eventually(lambda: not life.manager.readiness())
    objects.add_nad("net-a")
    yield life
    life.check()
    await life.crash()


async def test_a_pod_keeps_the_addresses_of_the_first_write(
    server: FakeApiServer, objects: ClusterObjects, life: CrashableManager
) -> None:
    server.faults.lost_responses_to = ["virtualmachines"]
    uid = objects.add_pod("web-0", networks="net-a,net-a")
    await eventually(lambda: objects.status("web-0"))
    (written,) = virtual_machine_history(server, uid)
    assert written == stored_virtual_machines(server)[uid]
    assert set(allocated_addresses(server).values()) == {interface.uuid for interface in written.interfaces}


async def test_a_pod_deleted_before_its_virtual_machine_is_confirmed_leaves_nothing(
    server: FakeApiServer, objects: ClusterObjects, life: CrashableManager
) -> None:
    server.faults.lost_responses_to = ["virtualmachines"]
    uid = objects.add_pod("web-0")
    await eventually(lambda: virtual_machine_history(server, uid))
    objects.remove_pod("web-0")
    await eventually(lambda: not stored_virtual_machines(server) and not allocated_addresses(server))


async def test_a_nad_deleted_before_its_network_is_confirmed_leaves_nothing(
    server: FakeApiServer, objects: ClusterObjects, life: CrashableManager
) -> None:
    await eventually(lambda: len(stored_networks(server)) == 2)
    server.faults.reject(500, verb="update", times=1000)  # it stays proposed
    objects.add_nad("net-b")
    await eventually(lambda: len(stored_networks(server)) == 3)
    objects.remove_nad("net-b")
    server.faults.rejections.clear()
    await eventually(lambda: len(stored_networks(server)) == 2)


async def test_a_pod_gets_the_addresses_of_an_allocation_whose_answer_was_lost(
    server: FakeApiServer, objects: ClusterObjects, life: CrashableManager
) -> None:
    server.faults.lost_responses_to = ["addressblocks"]
    uid = objects.add_pod("web-0")
    await eventually(lambda: objects.status("web-0"))
    assert [interface.uuid for interface in stored_virtual_machines(server)[uid].interfaces] == list(
        allocated_addresses(server).values()
    )


async def test_a_deletion_whose_answer_was_lost_releases_the_addresses(
    server: FakeApiServer, objects: ClusterObjects, life: CrashableManager
) -> None:
    objects.add_pod("web-0")
    await eventually(lambda: objects.status("web-0"))
    server.faults.lost_responses_to = ["virtualmachines", "addressblocks"]
    objects.remove_pod("web-0")
    await eventually(lambda: not stored_virtual_machines(server) and not allocated_addresses(server))


async def test_a_deleted_virtual_machine_is_restored_as_it_was(
    server: FakeApiServer, objects: ClusterObjects, life: CrashableManager
) -> None:
    uid = objects.add_pod("web-0", networks="net-a")
    await eventually(lambda: objects.status("web-0"))
    before = stored_virtual_machines(server)[uid]
    remove_virtual_machine(server, "web-0")
    objects.change_pod("web-0", {"metadata": {"annotations": {"opencontrail.org/default-gw": "eth1"}}})
    await eventually(lambda: uid in stored_virtual_machines(server))
    after = stored_virtual_machines(server)[uid]
    assert [one.addresses for one in after.interfaces] == [one.addresses for one in before.interfaces]
