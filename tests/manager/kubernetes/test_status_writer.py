"""Each pod gets its network status once, after its list is written."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator

import msgspec
import pytest

from contrail_config.kube import work_queue
from contrail_config.kube.client import KubeClient
from contrail_config.objects import VirtualMachine, static_pod_uuid
from manager.kubernetes.network_status import network_status
from manager.kubernetes.objects import identity
from manager.kubernetes.status_writer import StatusWriter
from manager.kubernetes.wire import PodObject
from tests.support.cluster_objects import STATUS_KEY, ClusterObjects
from tests.support.fake_apiserver.kinds import PODS, Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.virtual_machines import make_virtual_machine


@pytest.fixture
async def writer(client: KubeClient, server: FakeApiServer) -> AsyncIterator[StatusWriter]:
    def pod_of(vm: VirtualMachine) -> PodObject | None:
        pods = (msgspec.convert(pod, PodObject) for pod in server.storage.objects(PODS).values())
        return next((pod for pod in pods if identity(pod) == vm.uuid), None)

    writer = StatusWriter(client, pod_of=pod_of)
    yield writer
    await writer.close()


class BlockedPatch:
    """The server blocks patches: `begun` is set, and `go_on` unblocks them."""

    def __init__(self, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        monkeypatch.setattr(server.faults, "delay", self._delay)

    async def _delay(self, verb: str, _kind: Kind, _name: str) -> None:
        if verb == "patch":
            self.begun.set()
            await self.go_on.wait()


@pytest.fixture
def blocked(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> BlockedPatch:
    return BlockedPatch(server, monkeypatch)


async def test_a_newly_assigned_pod_gets_its_status_in_one_write(
    writer: StatusWriter, objects: ClusterObjects, server: FakeApiServer
) -> None:
    uid = objects.add_pod("web-0", annotations={"of/others": "stays"}, status={"phase": "Pending"})
    server.requests.clear()
    writer.on_assigned(make_vm(uid), is_new=True)
    await writer.queue.idle()
    assert server.requests == ["patch pods"]
    annotations = objects.pod("web-0")["metadata"]["annotations"]
    assert set(annotations) == {"of/others", STATUS_KEY}
    (attachment,) = json.loads(annotations[STATUS_KEY])
    assert attachment["default"] is True
    assert objects.pod("web-0")["status"] == {"phase": "Pending"}


async def test_a_status_set_by_the_user_is_overwritten(writer: StatusWriter, objects: ClusterObjects) -> None:
    uid = objects.add_pod("web-0", annotations={STATUS_KEY: "mine"})
    writer.on_assigned(make_vm(uid), is_new=True)
    await writer.queue.idle()
    assert objects.status("web-0") != "mine"


async def test_after_a_restart_only_missing_statuses_are_written(
    writer: StatusWriter, objects: ClusterObjects, server: FakeApiServer
) -> None:
    there = objects.add_pod("web-0", annotations={STATUS_KEY: "[]"})
    missing = objects.add_pod("web-1")
    writer.on_assigned(make_vm(there), is_new=False)
    writer.on_assigned(make_vm(missing, pod="web-1"), is_new=False)
    await writer.queue.idle()
    assert objects.status("web-0") == "[]"
    assert objects.status("web-1") not in (None, "[]")
    assert server.requests == ["patch pods"]


@pytest.mark.parametrize("code", [500, 429, 409, 401, 403])
async def test_a_failed_write_is_retried(
    writer: StatusWriter, objects: ClusterObjects, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(work_queue, "FIRST_RETRY", 0.001)
    uid = objects.add_pod("web-0")
    server.faults.reject(code, verb="patch", times=5)
    writer.on_assigned(make_vm(uid), is_new=True)
    async with asyncio.timeout(20):
        await eventually(lambda: objects.status("web-0") is not None)
    assert server.faults.rejected == 5


async def test_a_deleted_or_replaced_pod_gets_no_status(
    writer: StatusWriter, objects: ClusterObjects, server: FakeApiServer
) -> None:
    first = objects.add_pod("web-0")
    objects.remove_pod("web-0")
    objects.add_pod("web-0")
    writer.on_assigned(make_vm(first), is_new=True)
    writer.on_assigned(make_vm(str(uuid.uuid4()), pod="gone"), is_new=True)
    await writer.queue.idle()
    assert objects.status("web-0") is None
    assert server.requests == []


async def test_a_pod_deleted_or_replaced_during_the_write_gets_no_status(
    writer: StatusWriter, objects: ClusterObjects, server: FakeApiServer
) -> None:
    server.faults.reject(500, verb="patch", times=2)
    for name in ("web-0", "web-1"):
        writer.on_assigned(make_vm(objects.add_pod(name), pod=name), is_new=True)
    await writer.queue.idle()
    for name in ("web-0", "web-1"):
        objects.remove_pod(name)
    objects.add_pod("web-0")
    await eventually(lambda: writer.queue.failing == 0)
    assert objects.status("web-0") is None


async def test_a_recreated_mirror_gets_the_status_of_its_pod(writer: StatusWriter, objects: ClusterObjects) -> None:
    annotations = {"kubernetes.io/config.hash": "cafe", "kubernetes.io/config.mirror": "cafe"}
    static = make_vm(static_pod_uuid("blue", "web-0", "cafe"))
    for _ in range(2):
        objects.add_pod("web-0", annotations=annotations)
        writer.on_assigned(static, is_new=False)
        await writer.queue.idle()
        assert objects.status("web-0") is not None
        objects.remove_pod("web-0")


async def test_a_virtual_machine_queued_again_during_its_write_is_written_once(
    writer: StatusWriter, objects: ClusterObjects, server: FakeApiServer, blocked: BlockedPatch
) -> None:
    vm = make_vm(objects.add_pod("web-0"))
    writer.on_assigned(vm, is_new=True)
    await blocked.begun.wait()
    writer.on_assigned(vm, is_new=False)
    blocked.go_on.set()
    await writer.queue.idle()
    assert writer.queue.failing == 0
    assert server.requests == ["patch pods"]


async def test_a_virtual_machine_changed_during_its_write_is_written_again(
    writer: StatusWriter, objects: ClusterObjects, blocked: BlockedPatch
) -> None:
    first = make_vm(objects.add_pod("web-0"))
    second = msgspec.structs.replace(first, interfaces=first.interfaces[:1] * 2)
    writer.on_assigned(first, is_new=True)
    await blocked.begun.wait()
    writer.on_assigned(second, is_new=True)
    blocked.go_on.set()
    await writer.queue.idle()
    assert writer.queue.failing == 0
    assert objects.status("web-0") == network_status(second) != network_status(first)


async def test_a_rejected_write_is_logged_and_not_retried(
    writer: StatusWriter, objects: ClusterObjects, server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    uid = objects.add_pod("web-0")
    server.faults.reject(400, verb="patch")
    writer.on_assigned(make_vm(uid), is_new=True)
    await writer.queue.idle()
    assert writer.queue.failing == 0
    assert "pod blue/web-0: network status not written: PATCH" in caplog.text


def make_vm(uid: str, *, pod: str = "web-0") -> VirtualMachine:
    return msgspec.structs.replace(make_virtual_machine(pod, uid=uid), namespace="blue")
