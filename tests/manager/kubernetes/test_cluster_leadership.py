"""Leader election: one manager reads and writes, the others stand by, and one that lost the lease ends."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from contrail_config.embedded.store import SqliteStore
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.errors import KubeConfigurationError, KubeLeadershipLostError
from contrail_config.kube.leader_election import LeaseTimings
from manager.configuration import KubernetesSourceSettings as Settings
from manager.configuration import ManagerConfiguration, MetaPlugin, MetaPluginSettings
from manager.kubernetes.cluster import ClusterMember, join_cluster
from manager.kubernetes.wire import PODS
from manager.manager import Manager
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.faults import Faults
from tests.support.fake_apiserver.kinds import BUILT_IN, Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object
from tests.support.fake_apiserver.writes import merge
from tests.support.recorded_reflector import DEADLINE, eventually

LEASES = next(kind for kind in BUILT_IN if kind.plural == "leases")
WRITES = ("create", "update", "patch", "delete")
TIMES = LeaseTimings(retry_period=0.1)  # a busy machine delays renewals, which must not end a leader


class Member:
    """A manager of the cluster, on a store of its own."""

    def __init__(self, cluster: ClusterMember, store: SqliteStore, configuration: ManagerConfiguration) -> None:
        self.cluster = cluster
        self.store = store
        self.manager = Manager(
            configuration,
            source=cluster.source,
            store=store,
            event_log=cluster.event_log,
            registry=CollectorRegistry(),
            is_plugged=set[str]().__contains__,
            on_assigned=cluster.on_assigned,
        )
        self.task = asyncio.create_task(cluster.run(self.manager.run))

    @property
    def readiness(self) -> list[str]:
        return self.cluster.readiness(self.manager.readiness())

    async def wait_until_ready(self) -> None:
        """Returns when it leads and has tried every pod."""
        await eventually(lambda: self.task.done() or (self.cluster.is_leader and not self.readiness))
        assert not self.task.done()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task], timeout=DEADLINE)


@contextlib.asynccontextmanager
async def member(
    server: FakeApiServer,
    folder: Path,
    *,
    configuration: ManagerConfiguration | None = None,
    times: LeaseTimings = TIMES,
) -> AsyncIterator[Member]:
    configuration = configuration or ManagerConfiguration()
    store = await SqliteStore.open(folder / "config.db")
    access = ClientConfig(server.url)
    async with join_cluster(configuration, Settings(), access=access, lease_times=times) as cluster:
        joined = Member(cluster, store, configuration)
        try:
            yield joined
        finally:
            await joined.stop()
            await store.close()


async def test_a_leader_assigns_pods_and_records_events(
    server: FakeApiServer, objects: ClusterObjects, tmp_path: Path
) -> None:
    async with member(server, tmp_path) as manager:
        uid = objects.add_pod("web-0")
        await manager.wait_until_ready()
        await eventually(lambda: objects.status("web-0") is not None)
        vm = await manager.store.virtual_machine(uid)
        assert vm.interfaces[0].addresses[0].address in str(objects.status("web-0"))
        await manager.manager.recorder.flush()
        (event,) = await manager.cluster.event_log.events(name="web-0")
        assert event.reason == "InterfacesAssigned"


async def test_the_network_status_is_not_written_under_multus(
    server: FakeApiServer, objects: ClusterObjects, tmp_path: Path
) -> None:
    configuration = ManagerConfiguration(meta_plugin=MetaPluginSettings(kind=MetaPlugin.MULTUS))
    objects.add_pod("web-0")
    async with member(server, tmp_path, configuration=configuration) as manager:
        await manager.wait_until_ready()
        assert len(await manager.store.virtual_machines()) == 1
    assert objects.requests("patch pods") == 0


@pytest.mark.machine
async def test_a_pod_costs_one_write_besides_events(
    server: FakeApiServer, objects: ClusterObjects, tmp_path: Path
) -> None:
    async with member(server, tmp_path) as manager:
        await manager.wait_until_ready()
        for number in range(20):
            objects.add_pod(f"web-{number}")
        await eventually(lambda: all(objects.status(f"web-{number}") for number in range(20)))
        objects.change_pod("web-0", {"status": {"phase": "Running"}})
        objects.add_pod("last")
        await eventually(lambda: objects.status("last"))
    writes = [request for request in server.requests if request.split()[0] in WRITES]
    assert writes.count("patch pods") == 21
    assert {request.split()[1] for request in writes} == {"pods", "events", "leases", "customresourcedefinitions"}


async def test_a_status_that_a_killed_manager_did_not_write_is_written_by_the_next(
    server: FakeApiServer, objects: ClusterObjects, tmp_path: Path
) -> None:
    objects.add_pod("web-0")
    multus = ManagerConfiguration(meta_plugin=MetaPluginSettings(kind=MetaPlugin.MULTUS))
    async with member(server, tmp_path, configuration=multus) as manager:  # one that writes no status
        await manager.wait_until_ready()
    assert objects.status("web-0") is None
    async with member(server, tmp_path) as manager:
        await manager.wait_until_ready()
        await eventually(lambda: objects.status("web-0"))
    async with member(server, tmp_path) as manager:
        await manager.wait_until_ready()
    assert objects.requests("patch pods") == 1


async def test_a_standby_is_ready_and_neither_reads_nor_writes(
    server: FakeApiServer, objects: ClusterObjects, tmp_path: Path
) -> None:
    objects.add_pod("web-0")
    async with member(server, tmp_path / "a") as leader:
        await leader.wait_until_ready()
        await eventually(lambda: objects.status("web-0"))
        await leader.manager.recorder.flush()
        before = len(server.requests)
        async with member(server, tmp_path / "b") as standby:
            await eventually(lambda: server.requests[before:].count("get leases") >= 3)
            assert standby.readiness == []
            assert not standby.cluster.is_leader
            assert {request.split()[1] for request in server.requests[before:]} == {"leases"}
            assert await standby.store.virtual_machines() == []


async def test_a_standby_takes_over_at_once_when_the_leader_stops(
    server: FakeApiServer, objects: ClusterObjects, tmp_path: Path
) -> None:
    uid = objects.add_pod("web-0")
    async with member(server, tmp_path / "a") as leader:
        await leader.wait_until_ready()
        async with member(server, tmp_path / "b") as standby:
            await leader.stop()
            await standby.wait_until_ready()
            assert (await standby.store.virtual_machine(uid)).pod == "web-0"


class HungPods(Faults):
    """Changes of pods get no response, until the connection is closed."""

    async def delay(self, verb: str, kind: Kind, name: str) -> None:
        if (verb, kind.plural) == ("patch", "pods"):
            await asyncio.Event().wait()


async def test_a_leader_that_stops_releases_the_lease_although_a_write_hangs(
    server: FakeApiServer, objects: ClusterObjects, tmp_path: Path
) -> None:
    server.faults = HungPods()
    objects.add_pod("web-0")
    async with member(server, tmp_path) as leader:
        await leader.wait_until_ready()
        await eventually(lambda: objects.requests("patch pods"))
        leader.task.cancel()
        await eventually(lambda: "holderIdentity" not in lease(server)["spec"])
        await eventually(leader.task.done)


async def test_a_leader_that_lost_the_lease_writes_nothing_more_and_ends(
    server: FakeApiServer, objects: ClusterObjects, tmp_path: Path
) -> None:
    async with member(server, tmp_path) as leader:
        await leader.wait_until_ready()
        await leader.manager.recorder.flush()
        steal_lease(server)
        await eventually(leader.task.done)
        before = len(server.requests)
        with pytest.raises(KubeLeadershipLostError, match="lease contrail-manager: lost"):
            leader.task.result()
        objects.add_pod("web-0")
        with pytest.raises(KubeLeadershipLostError, match="not held"):
            await leader.cluster.client.patch(PODS, "web-0", {}, namespace="blue")
        with pytest.raises(KubeLeadershipLostError, match="not held"):
            await leader.cluster.client.delete(PODS, "web-0", namespace="blue")
    assert not [request for request in server.requests[before:] if request.split()[0] in WRITES]


async def test_a_leader_that_cannot_renew_its_lease_writes_nothing_more_and_ends(
    server: FakeApiServer, objects: ClusterObjects, tmp_path: Path
) -> None:
    async with member(server, tmp_path, times=LeaseTimings(1.0, 0.6, 0.1)) as leader:
        await leader.wait_until_ready()
        server.faults.reject(500, verb="patch", times=1000)
        objects.add_pod("web-0")
        await eventually(leader.task.done)
        with pytest.raises(KubeLeadershipLostError):
            leader.task.result()
        server.faults.rejections.clear()
    assert objects.status("web-0") is None


async def test_a_missing_kubeconfig_is_reported(tmp_path: Path) -> None:
    settings = Settings(kubeconfig=str(tmp_path / "none.yaml"))
    with pytest.raises(KubeConfigurationError, match="none"):
        async with join_cluster(ManagerConfiguration(), settings):
            pytest.fail("it joined")


def lease(server: FakeApiServer) -> Object:
    (found,) = server.storage.objects(LEASES).values()
    return found


def steal_lease(server: FakeApiServer) -> None:
    server.storage.put(LEASES, merge(lease(server), {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}}))
