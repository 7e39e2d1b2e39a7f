"""In a cluster, why a pod waits is a virtual machine without interfaces in the place of the one that it gets later."""

import pytest

from contrail_config.objects import Pending
from manager.controller import pending_reporter
from tests.manager.kubernetes.conftest import Managed
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import VIRTUAL_MACHINE_KIND, stored_reasons, stored_virtual_machines

MISSING = Pending("NetworkNotFound", "network attachment definition blue/net-a not found")


@pytest.fixture(autouse=True)
def short_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_reporter, "DELAY", 0.05)


def versions(server: FakeApiServer) -> int:
    """Number of changes of virtual machines in the server's history."""
    return len(list(server.storage.since(0, VIRTUAL_MACHINE_KIND)))


async def test_a_pod_that_waits_costs_three_writes(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        uid = objects.add_pod("web-0", networks="net-a")
        await eventually(lambda: stored_reasons(server) == {uid: MISSING})
        objects.add_nad("net-a")
        await eventually(lambda: objects.status("web-0") is not None)
        assert len(stored_virtual_machines(server)[uid].interfaces) == 2
        assert stored_reasons(server) == {}
        objects.remove_pod("web-0")
        await eventually(lambda: not server.storage.objects(VIRTUAL_MACHINE_KIND))
    assert versions(server) == 3


async def test_a_recreated_pod_gets_a_reason_of_its_own(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        first = objects.add_pod("web-0", networks="net-a")
        await eventually(lambda: stored_reasons(server) == {first: MISSING})
        objects.remove_pod("web-0")
        second = objects.add_pod("web-0", networks="net-b")
        other = Pending("NetworkNotFound", "network attachment definition blue/net-b not found")
        await eventually(lambda: stored_reasons(server) == {second: other})


async def test_the_next_manager_deletes_reasons_of_deleted_pods_and_writes_no_other_again(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        uids = {name: objects.add_pod(name, networks="net-a") for name in ("stays", "goes")}
        await eventually(lambda: len(stored_reasons(server)) == 2)
    objects.remove_pod("goes")
    async with managed():
        await eventually(lambda: stored_reasons(server) == {uids["stays"]: MISSING})
        uid = objects.add_pod("mark", networks="net-b")
        await eventually(lambda: uid in stored_reasons(server))
    assert versions(server) == 4


async def test_a_reason_deleted_by_somebody_is_no_deleted_virtual_machine(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with managed():
        uid = objects.add_pod("web-0", networks="net-a")
        await eventually(lambda: stored_reasons(server) == {uid: MISSING})
        ((namespace, name),) = server.storage.objects(VIRTUAL_MACHINE_KIND)
        server.remove(VIRTUAL_MACHINE_KIND, name, namespace=namespace)
        objects.add_nad("net-a")
        await eventually(lambda: uid in stored_virtual_machines(server))
    assert "deleted by somebody else" not in caplog.text


async def test_a_rejected_reason_is_logged_and_written_later(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with managed():
        server.faults.reject(403, verb="create", times=2)  # the event and the reason
        uid = objects.add_pod("web-0", networks="net-a")
        await eventually(lambda: stored_reasons(server) == {uid: MISSING})
    assert "blue/web-0: retry in" in caplog.text
