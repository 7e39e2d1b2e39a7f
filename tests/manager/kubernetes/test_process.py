"""`contrail-manager` in a cluster as a process: shutdown, exit statuses and last messages."""

import asyncio
import copy
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contrail_config.kubernetes.crds import crds
from tests.support.cluster_objects import ClusterObjects
from tests.support.cluster_processes import ManagerProcess, plain_kubeconfig
from tests.support.fake_apiserver.kinds import BUILT_IN, CRDS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually

LEASES = next(kind for kind in BUILT_IN if kind.plural == "leases")
SIGTERM_GRACE = 5.0


@pytest.fixture
def manager(server: FakeApiServer, tmp_path: Path) -> Iterator[ManagerProcess]:
    manager = ManagerProcess(tmp_path / "manager", plain_kubeconfig(tmp_path, server.url))
    yield manager
    if manager.process is not None and manager.process.poll() is None:
        manager.kill()


async def leading(manager: ManagerProcess) -> None:
    manager.launch()
    await asyncio.to_thread(manager.wait_until_it_leads)


def holder(server: FakeApiServer) -> str | None:
    """Holder of the lease."""
    (lease,) = server.storage.objects(LEASES).values()
    identity: str | None = lease["spec"].get("holderIdentity")
    return identity


async def test_a_manager_releases_the_lease_at_shutdown(
    manager: ManagerProcess, server: FakeApiServer, objects: ClusterObjects
) -> None:
    objects.add_pod("web-0")
    await leading(manager)
    (pod,) = await asyncio.to_thread(manager.items, "pods")
    assert (pod["name"], pod["state"], len(pod["machine"]["interfaces"])) == ("web-0", "Ready", 1)
    assert holder(server)
    assert await asyncio.to_thread(manager.stop) == 0
    assert not holder(server)
    assert "Warning: " not in manager.log.read_text()
    assert " WARNING " not in manager.log.read_text()  # even at the first start in a cluster, without any CRD


async def test_shutdown_is_in_time_while_the_server_is_down(manager: ManagerProcess, server: FakeApiServer) -> None:
    await leading(manager)
    await server.stop()
    assert await asyncio.to_thread(stop_in_time, manager) == 0


async def test_shutdown_is_in_time_while_a_write_is_unanswered(
    manager: ManagerProcess, server: FakeApiServer, objects: ClusterObjects
) -> None:
    objects.add_pod("web-0")
    await leading(manager)
    begun = objects.requests("update addressblocks")
    server.faults.hung = True
    objects.add_pod("web-1")
    await eventually(lambda: objects.requests("update addressblocks") > begun)
    assert await asyncio.to_thread(stop_in_time, manager) == 0
    assert " releasing the lease although writes are in progress" in manager.log.read_text()


async def test_definitions_of_an_older_release_make_leader_and_standby_unready(
    manager: ManagerProcess, server: FakeApiServer, tmp_path: Path
) -> None:
    """A rolling update stops before the new manager leads."""
    definition = copy.deepcopy(crds()["virtualnetworks.opencontrail.org"])
    del definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["retired"]
    conditions = [{"type": "Established", "status": "True"}]
    server.storage.put(CRDS, {**definition, "status": {"conditions": conditions}})
    manager.launch()
    await asyncio.to_thread(manager.wait_until, lambda: manager.leads and names_older(manager), what="unready")
    standby = ManagerProcess(tmp_path / "standby", plain_kubeconfig(tmp_path, server.url))
    standby.launch()
    try:
        await asyncio.to_thread(standby.wait_until, lambda: names_older(standby), what="unready")
        assert not standby.leads
    finally:
        standby.kill()


def names_older(manager: ManagerProcess) -> bool:
    status, answer = manager.ask("/readyz")
    return status == 503 and "of an older release, without spec.retired: apply deploy/crds" in str(answer)


def stop_in_time(manager: ManagerProcess) -> int:
    """Returns the exit status."""
    begun = time.monotonic()
    status = manager.stop()
    assert time.monotonic() - begun < SIGTERM_GRACE
    assert "Traceback" not in manager.log.read_text()
    return status


async def test_a_manager_that_cannot_renew_its_lease_ends_with_one_line(
    manager: ManagerProcess, server: FakeApiServer
) -> None:
    await leading(manager)
    server.faults.hung = True
    assert await asyncio.to_thread(manager.ended) == 1
    text = manager.log.read_text()
    assert text.splitlines()[-1] == "contrail-manager: lease contrail-manager: lost: timed out"
    assert "Traceback" not in text


async def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    manager = ManagerProcess(tmp_path, tmp_path / "absent")
    manager.launch()
    assert await asyncio.to_thread(manager.ended) == 2
    last = manager.log.read_text().splitlines()[-1]
    assert last.startswith("contrail-manager: source.kubeconfig: ")
    assert str(tmp_path / "absent") in last


async def test_a_standby_that_cannot_reach_the_server_is_not_ready(
    server: FakeApiServer, manager: ManagerProcess
) -> None:
    await server.stop()
    manager.launch()

    def said() -> bool:
        status, answer = manager.ask("/readyz")
        return status == 503 and "lease contrail-manager" in str(answer["reasons"])

    await asyncio.to_thread(manager.wait_until, said, what="saying that it could not lead")
    assert (await asyncio.to_thread(manager.get, "/healthz"))["healthy"]
    assert (await asyncio.to_thread(manager.ask, "/v1/pods"))[0] == 503
    assert await asyncio.to_thread(manager.stop) == 0
