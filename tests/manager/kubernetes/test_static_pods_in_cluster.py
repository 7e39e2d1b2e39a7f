"""A mirror pod is deleted through the API while its static pod runs: kubelet recreates it with another uid."""

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.kubernetes.node_reports import NodeReports
from contrail_config.objects import VirtualMachine, interface_uuid, static_pod_uuid
from manager.controller import static_pods
from tests.manager.kubernetes.conftest import Managed
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import (
    allocated_addresses,
    stored_virtual_machines,
    virtual_machine_history,
)

HASH = "0123456789abcdef0123456789abcdef"
ANNOTATIONS = {"kubernetes.io/config.hash": HASH, "kubernetes.io/config.mirror": HASH}
NAME = "proxy-node-1"
UUID = static_pod_uuid("blue", NAME, HASH)


def add_mirror(objects: ClusterObjects) -> str:
    """Creates a mirror as kubelet does, without data of an earlier one, and returns its uid."""
    return objects.add_pod(NAME, networks="net-a", annotations=ANNOTATIONS)


async def served(objects: ClusterObjects, server: FakeApiServer) -> VirtualMachine:
    """The static pod's virtual machine, once its mirror has a status."""
    await eventually(lambda: objects.status(NAME) is not None)
    return stored_virtual_machines(server)[UUID]


async def wait_until_processed(objects: ClusterObjects, server: FakeApiServer, name: str) -> None:
    """Returns when the manager has processed all earlier changes."""
    uid = objects.add_pod(name)
    await eventually(lambda: uid in stored_virtual_machines(server))


async def test_a_static_pod_keeps_its_list_when_its_mirror_is_recreated(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        objects.add_nad("net-a")
        uids = {add_mirror(objects)}
        vm = await served(objects, server)
        for number in range(3):
            objects.remove_pod(NAME)
            await wait_until_processed(objects, server, f"other-{number}")
            assert stored_virtual_machines(server)[UUID] == vm
            uids.add(add_mirror(objects))
            assert await served(objects, server) == vm
        assert virtual_machine_history(server, UUID) == [vm]
        assert len(uids) == 4


async def test_a_static_pod_is_identified_by_its_hash(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        objects.add_nad("net-a")
        uid = add_mirror(objects)
        vm = await served(objects, server)
        assert vm.config_hash == HASH
        assert uid not in stored_virtual_machines(server)


async def test_the_next_manager_waits_for_the_mirror_too(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        objects.add_nad("net-a")
        add_mirror(objects)
        vm = await served(objects, server)
        objects.remove_pod(NAME)
    async with managed():
        await wait_until_processed(objects, server, "other-1")
        assert stored_virtual_machines(server)[UUID] == vm
        add_mirror(objects)
        assert await served(objects, server) == vm
        assert virtual_machine_history(server, UUID) == [vm]


async def test_only_a_report_that_began_after_the_deletion_releases_the_pod(
    managed: Managed,
    objects: ClusterObjects,
    server: FakeApiServer,
    client: KubeClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(static_pods, "_REPORT_DELAY", 0.05)
    other = static_pod_uuid("blue", "other", HASH)
    node = NodeReports(client, "node-1")
    await ensure_crds(client)
    await node.write(report(UUID))
    async with managed():
        objects.add_nad("net-a")
        add_mirror(objects)
        vm = await served(objects, server)
        objects.add_pod("other", annotations=ANNOTATIONS)
        await eventually(lambda: objects.status("other") is not None)
        for name in (NAME, "other"):
            objects.remove_pod(name)
        await wait_until_processed(objects, server, "later")
        await node.write(report(UUID, other))
        await eventually(lambda: other not in stored_virtual_machines(server))
        assert stored_virtual_machines(server)[UUID] == vm


def report(*vms: str) -> NodeReport:
    """An agent's report that the first interfaces of these virtual machines are unplugged."""
    unplugged = tuple(interface_uuid(uuid, 0) for uuid in vms)
    return NodeReport("2026-11-21T12:00:00Z", "node-1", unplugged=unplugged)


async def test_a_pod_whose_manifest_was_removed_is_released_after_the_timeout(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_pods, "MIRROR_TIMEOUT", 0.1)
    async with managed():
        objects.add_nad("net-a")
        add_mirror(objects)
        await served(objects, server)
        objects.remove_pod(NAME)
        await eventually(lambda: not stored_virtual_machines(server) and not allocated_addresses(server))
