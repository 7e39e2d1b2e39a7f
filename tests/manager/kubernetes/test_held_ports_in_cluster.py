"""Holds of addresses after their pod: short if its sandbox is known to be removed, else until its node reports the
ports as unplugged, or for five minutes; across changes of the manager."""

import time

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.kubernetes.node_reports import NodeReports
from contrail_config.objects import interface_uuid
from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD
from tests.manager.kubernetes.conftest import Managed
from tests.support import address_blocks
from tests.support.cluster_objects import NO_SANDBOX, ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import (
    BLOCK_KIND,
    allocated_addresses,
    remove_virtual_machine,
    stored_virtual_machines,
)

LONG, SHORT = pytest.approx(UNPLUGGED_HOLD, abs=5), pytest.approx(DEFAULT_HOLD, abs=5)


@pytest.fixture
async def node(client: KubeClient) -> NodeReports:
    return NodeReports(client, "node-1")


async def unplugged(node: NodeReports, uid: str) -> None:
    """Reports the pod's only port as unplugged."""
    await node.write(NodeReport("2026-11-21T12:00:00Z", "node-1", unplugged=(interface_uuid(uid, 0),)))


def hold(server: FakeApiServer, uid: str) -> float | None:
    """Seconds from its release for which the address of the pod's only interface is held; None if it is not."""
    return address_blocks.hold_seconds(server.storage.objects(BLOCK_KIND).values(), interface_uuid(uid, 0))


async def started(objects: ClusterObjects, server: FakeApiServer, name: str = "web-0") -> str:
    """Returns the uid of a new pod, once its virtual machine is written."""
    uid = objects.add_pod(name)
    await eventually(lambda: uid in stored_virtual_machines(server))
    return uid


async def held(server: FakeApiServer, uid: str) -> float | None:
    """The hold, once there is one."""
    await eventually(lambda: hold(server, uid) is not None)
    return hold(server, uid)


async def test_the_hold_is_short_if_the_sandbox_is_removed(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """As kubelet does: first the condition, then the deletion."""
    async with managed():
        uid = await started(objects, server)
        objects.change_pod("web-0", {"status": NO_SANDBOX})
        objects.remove_pod("web-0")
        assert await held(server, uid) == SHORT


async def test_the_hold_is_short_for_an_ended_pod_that_is_not_deleted(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        uid = await started(objects, server)
        objects.change_pod("web-0", {"status": NO_SANDBOX})
        assert await held(server, uid) == SHORT


async def test_a_pod_that_its_node_rejected_releases_its_address_with_a_long_hold(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """A restarted kubelet may have started it before."""
    async with managed():
        uid = await started(objects, server)
        objects.change_pod("web-0", {"status": {"phase": "Failed", "reason": "NodeAffinity"}})
        assert await held(server, uid) == LONG
        assert stored_virtual_machines(server) == {}


async def test_the_hold_of_a_rejected_pod_ends_when_its_node_reports_the_port(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
) -> None:
    async with managed():
        uid = await started(objects, server)
        objects.change_pod("web-0", {"status": {"phase": "Failed", "reason": "OutOfcpu"}})
        assert await held(server, uid) == LONG
        await unplugged(node, uid)
        await eventually(lambda: hold(server, uid) == SHORT)


async def test_a_pod_rejected_while_no_manager_runs_releases_its_address(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        uid = await started(objects, server)
    objects.change_pod("web-0", {"status": {"phase": "Failed", "reason": "NodeAffinity"}})
    async with managed():
        assert await held(server, uid) == LONG


async def test_a_failed_pod_that_was_started_keeps_its_address_until_its_sandbox_is_removed(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        uid = await started(objects, server)
        status = {"phase": "Failed", "reason": "Evicted", "containerStatuses": [{"name": "main"}]}
        objects.change_pod("web-0", {"status": status})
        await started(objects, server, "later")
        assert uid in stored_virtual_machines(server)
        objects.change_pod("web-0", {"status": {**status, "conditions": NO_SANDBOX["conditions"]}})
        assert await held(server, uid) == SHORT


async def test_the_hold_is_long_if_the_state_of_the_sandbox_is_unknown(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """A pod deleted by force, on a node whose agent does not report."""
    async with managed():
        uid = await started(objects, server)
        objects.remove_pod("web-0")
        assert await held(server, uid) == LONG


async def test_a_phase_set_by_another_component_says_nothing_of_the_sandbox(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """The pod garbage collector sets it before it deletes pods of unreachable nodes."""
    async with managed():
        uid = await started(objects, server)
        objects.change_pod("web-0", {"status": {"phase": "Failed"}})
        objects.remove_pod("web-0")
        assert await held(server, uid) == LONG


async def test_a_successor_of_the_same_name_does_not_get_a_held_address(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        uid = await started(objects, server)
        objects.remove_pod("web-0")
        successor = await started(objects, server)
        assert await held(server, uid) == LONG
        assert set(allocated_addresses(server).values()) == {interface_uuid(successor, 0)}


@pytest.mark.parametrize("seconds", [86_400.0, -86_400.0])
async def test_setting_the_clock_ends_neither_the_hold_nor_the_lead(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    async with managed():
        uid = await started(objects, server)
        objects.remove_pod("web-0")
        await held(server, uid)
        moved = time.time() + seconds
        monkeypatch.setattr("time.time", lambda: moved)
        await started(objects, server, "web-1")  # whose address is written beside the one that is held back
        assert hold(server, uid) == LONG


async def test_the_hold_is_shortened_once_the_node_reports_the_port_unplugged(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
) -> None:
    async with managed():
        uid = await started(objects, server)
        objects.remove_pod("web-0")
        await held(server, uid)
        await unplugged(node, uid)
        await eventually(lambda: hold(server, uid) == SHORT)


async def test_the_report_of_another_node_does_not_shorten_the_hold(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, client: KubeClient, node: NodeReports
) -> None:
    async with managed():
        uid, other = await started(objects, server), await started(objects, server, "web-1")
        for name in ("web-0", "web-1"):
            objects.remove_pod(name)
        await held(server, uid)
        await held(server, other)
        await unplugged(NodeReports(client, "node-2"), uid)
        await unplugged(node, other)
        await eventually(lambda: hold(server, other) == SHORT)
        assert hold(server, uid) == LONG


async def test_a_report_from_before_the_deletion_shortens_the_hold(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
) -> None:
    async with managed():
        uid = await started(objects, server)
        await unplugged(node, uid)
        objects.remove_pod("web-0")
        await eventually(lambda: hold(server, uid) == SHORT)


async def test_a_report_does_not_affect_a_running_pod(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
) -> None:
    async with managed():
        uid = await started(objects, server)
        given = allocated_addresses(server)
        await unplugged(node, uid)
        await started(objects, server, "web-1")
        assert given.items() <= allocated_addresses(server).items()


class TestAnotherManager:
    """Holds are in the store and reports persist: the order of managers does not matter."""

    async def test_a_hold_outlives_its_manager_and_is_shortened_by_the_next(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
    ) -> None:
        async with managed():
            uid = await started(objects, server)
            objects.remove_pod("web-0")
            await held(server, uid)
        async with managed():
            await started(objects, server, "web-1")
            assert hold(server, uid) == LONG
            await unplugged(node, uid)
            await eventually(lambda: hold(server, uid) == SHORT)

    async def test_the_report_of_another_node_does_not_shorten_a_hold_of_an_earlier_manager(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer, client: KubeClient, node: NodeReports
    ) -> None:
        async with managed():
            uid, other = await started(objects, server), await started(objects, server, "web-1")
            for name in ("web-0", "web-1"):
                objects.remove_pod(name)
            await held(server, uid)
            await held(server, other)
        async with managed():
            await unplugged(NodeReports(client, "node-2"), uid)
            await unplugged(node, other)
            await eventually(lambda: hold(server, other) == SHORT)
            assert hold(server, uid) == LONG

    async def test_a_report_written_while_no_manager_ran_shortens_the_hold(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
    ) -> None:
        async with managed():
            uid = await started(objects, server)
            objects.remove_pod("web-0")
            await held(server, uid)
        await unplugged(node, uid)
        async with managed():
            await eventually(lambda: hold(server, uid) == SHORT)

    async def test_the_hold_is_long_for_a_pod_deleted_while_no_manager_ran(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer
    ) -> None:
        async with managed():
            uid = await started(objects, server)
        objects.remove_pod("web-0")
        async with managed():
            assert await held(server, uid) == LONG

    async def test_no_report_shortens_the_hold_if_the_virtual_machine_was_deleted_too(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
    ) -> None:
        """Nobody knows any more on which node the pod was."""
        async with managed():
            uid, other = await started(objects, server), await started(objects, server, "web-1")
        for name in ("web-0", "web-1"):
            objects.remove_pod(name)
        remove_virtual_machine(server, "web-0")
        async with managed():
            assert await held(server, uid) == LONG
            assert await held(server, other) == LONG
            reported = (interface_uuid(uid, 0), interface_uuid(other, 0))
            await node.write(NodeReport("2026-11-21T12:00:00Z", "node-1", unplugged=reported))
            await eventually(lambda: hold(server, other) == SHORT)
            assert hold(server, uid) == LONG
