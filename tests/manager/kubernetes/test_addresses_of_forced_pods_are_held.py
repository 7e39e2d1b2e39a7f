"""How long an address is held back after its pod: shortly if its sandbox is known to have ended, else until its node
says that its ports are unplugged, or for five minutes; whoever is the manager then."""

import time

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.kubernetes.node_reports import NodeReports
from contrail_config.objects import interface_uuid
from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD
from tests.manager.kubernetes.conftest import Managed
from tests.support import blocks_on_the_wire
from tests.support.cluster_objects import NO_SANDBOX, ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.following import eventually
from tests.support.kept_in_cluster import BLOCK_KIND, MACHINE_KIND, given_addresses, kept_machines

LONG, SHORT = pytest.approx(UNPLUGGED_HOLD, abs=5), pytest.approx(DEFAULT_HOLD, abs=5)


@pytest.fixture
async def node(client: KubeClient) -> NodeReports:
    return NodeReports(client, "node-1")


async def unplugged(node: NodeReports, uid: str) -> None:
    """The node reports that it unplugged the pod's only port."""
    await node.write(NodeReport("2026-11-21T12:00:00Z", "node-1", unplugged=(interface_uuid(uid, 0),)))


def hold(server: FakeApiServer, uid: str) -> float | None:
    """Seconds for which the address of the pod's only interface is held back, from its end on; None: it is not held."""
    return blocks_on_the_wire.hold(server.storage.objects(BLOCK_KIND).values(), interface_uuid(uid, 0))


async def started(objects: ClusterObjects, server: FakeApiServer, name: str = "web-0") -> str:
    """A pod whose machine is written."""
    uid = objects.add_pod(name)
    await eventually(lambda: uid in kept_machines(server))
    return uid


async def held(server: FakeApiServer, uid: str) -> float | None:
    """The hold, as soon as there is one."""
    await eventually(lambda: hold(server, uid) is not None)
    return hold(server, uid)


async def test_a_pod_whose_sandbox_has_ended_holds_shortly(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """As kubelet does it: first it says so, then it deletes the pod."""
    async with managed():
        uid = await started(objects, server)
        objects.change_pod("web-0", {"status": NO_SANDBOX})
        objects.remove_pod("web-0")
        assert await held(server, uid) == SHORT


async def test_so_does_one_that_has_ended_and_stays(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        uid = await started(objects, server)
        objects.change_pod("web-0", {"status": NO_SANDBOX})
        assert await held(server, uid) == SHORT


async def test_a_pod_of_which_nothing_was_said_holds_for_long(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """It was deleted by force, and its node has no agent that reports."""
    async with managed():
        uid = await started(objects, server)
        objects.remove_pod("web-0")
        assert await held(server, uid) == LONG


async def test_a_phase_that_somebody_else_set_is_no_word_of_its_sandbox(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """The garbage collector of pods sets it before it deletes those of nodes that do not answer."""
    async with managed():
        uid = await started(objects, server)
        objects.change_pod("web-0", {"status": {"phase": "Failed"}})
        objects.remove_pod("web-0")
        assert await held(server, uid) == LONG


async def test_its_successor_of_the_same_name_does_not_get_its_address(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        uid = await started(objects, server)
        objects.remove_pod("web-0")
        successor = await started(objects, server)
        assert await held(server, uid) == LONG
        assert set(given_addresses(server).values()) == {interface_uuid(successor, 0)}


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


async def test_it_holds_no_longer_than_until_its_node_unplugged_it(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
) -> None:
    async with managed():
        uid = await started(objects, server)
        objects.remove_pod("web-0")
        await held(server, uid)
        await unplugged(node, uid)
        await eventually(lambda: hold(server, uid) == SHORT)


async def test_what_the_node_said_before_anybody_waited_for_it_counts(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
) -> None:
    async with managed():
        uid = await started(objects, server)
        await unplugged(node, uid)
        objects.remove_pod("web-0")
        await eventually(lambda: hold(server, uid) == SHORT)


async def test_a_pod_that_lives_loses_nothing_by_what_its_node_says(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
) -> None:
    async with managed():
        uid = await started(objects, server)
        given = given_addresses(server)
        await unplugged(node, uid)
        await started(objects, server, "web-1")
        assert given.items() <= given_addresses(server).items()


class TestAnotherManager:
    """Holds are in the store, and reports stand: it does not matter who was there when."""

    async def test_a_hold_outlives_its_manager_and_ends_by_the_nodes_word_to_the_next(
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

    async def test_what_was_reported_while_there_was_no_manager_counts(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
    ) -> None:
        async with managed():
            uid = await started(objects, server)
            objects.remove_pod("web-0")
            await held(server, uid)
        await unplugged(node, uid)
        async with managed():
            await eventually(lambda: hold(server, uid) == SHORT)

    async def test_a_pod_that_went_unseen_holds_for_long(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer
    ) -> None:
        async with managed():
            uid = await started(objects, server)
        objects.remove_pod("web-0")
        async with managed():
            assert await held(server, uid) == LONG

    async def test_so_does_one_whose_machine_was_collected_with_it(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer, node: NodeReports
    ) -> None:
        async with managed():
            uid = await started(objects, server)
        objects.remove_pod("web-0")
        server.remove(MACHINE_KIND, "web-0", namespace="blue")
        async with managed():
            assert await held(server, uid) == LONG
            await unplugged(node, uid)
            await eventually(lambda: hold(server, uid) == SHORT)
