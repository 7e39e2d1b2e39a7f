"""Deletions of virtual machines by the manager or with their pods cost nothing and are not undone."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import msgspec
import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeGoneError
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import VIRTUAL_MACHINES, virtual_machine_object
from contrail_config.kubernetes.node_buckets import node_bucket
from contrail_config.objects import VirtualMachine, virtual_machine_name
from manager.deletions import Deletion, Remaining, Removed
from manager.kubernetes.deleted_virtual_machines import DeletedVirtualMachines
from tests.manager.kubernetes.conftest import Follow, Managed
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import DEADLINE, QUICK, eventually
from tests.support.stored_objects import (
    VIRTUAL_MACHINE_KIND,
    add_node_buckets,
    remove_virtual_machine,
    stored_virtual_machines,
    virtual_machine_item,
)
from tests.support.virtual_machines import MISSING_NETWORK, make_virtual_machine

QUIET = ("leases", "customresourcedefinitions", "events", "addressblocks", "pods")
"""Repeated requests, and those that follow from pods alone."""


async def served(objects: ClusterObjects, server: FakeApiServer, name: str) -> VirtualMachine:
    """The virtual machine of a new pod."""
    uid = objects.add_pod(name)
    await eventually(lambda: objects.status(name) is not None and uid in stored_virtual_machines(server))
    return stored_virtual_machines(server)[uid]


async def wait_until_processed(objects: ClusterObjects, server: FakeApiServer) -> None:
    """Returns when all deletions until now are processed: another one after them has been."""
    vm = await served(objects, server, "mark")
    remove_virtual_machine(server, "mark")
    await eventually(lambda: vm.uuid in stored_virtual_machines(server))


MARK = Counter({"create virtualmachines": 2})


def requests_since(server: FakeApiServer, since: int) -> Counter[str]:
    """Requests about virtual machines since then."""
    return Counter(one for one in server.requests[since:] if not one.endswith(QUIET))


def a_machine(name: str, *, cluster: str = "k8s", uuid: str | None = None) -> VirtualMachine:
    """A virtual machine in the namespace `blue`."""
    vm = make_virtual_machine(name, uid=uuid)
    return msgspec.structs.replace(
        vm, cluster=cluster, namespace="blue", name=virtual_machine_name(cluster, "blue", name), project="k8s-blue"
    )


async def written(client: KubeClient, name: str) -> VirtualMachine:
    """A virtual machine that is in the cluster."""
    await ensure_crds(client)
    vm = a_machine(name)
    await create(client, vm)
    return vm


async def create(client: KubeClient, vm: VirtualMachine) -> None:
    """Writes a virtual machine to the bucket of its node."""
    await client.create(VIRTUAL_MACHINES, virtual_machine_object(vm), namespace=node_bucket(vm.node))


@contextlib.asynccontextmanager
async def deletions_of(client: KubeClient, *gone: VirtualMachine) -> AsyncIterator[AsyncIterator[Deletion]]:
    """Deletions, while the pods of some virtual machines are gone."""
    async with (
        asyncio.timeout(DEADLINE),
        DeletedVirtualMachines(
            client, is_gone=gone.__contains__, on_appeared=lambda _vm: None, timings=QUICK
        ).watch() as deletions,
    ):
        yield deletions


@pytest.fixture
def buckets(objects: ClusterObjects, server: FakeApiServer) -> None:
    add_node_buckets(server)


class TestNoRequest:
    """The watch for deletions adds no requests."""

    async def test_for_a_deleted_pod(self, managed: Managed, objects: ClusterObjects, server: FakeApiServer) -> None:
        async with managed():
            before = len(server.requests)
            vm = await served(objects, server, "web-0")
            objects.remove_pod("web-0")
            await eventually(lambda: vm.uuid not in stored_virtual_machines(server))
            await wait_until_processed(objects, server)
            life = Counter(f"{verb} virtualmachines" for verb in ("create", "delete"))
            assert requests_since(server, before) == life + MARK

    async def test_for_a_recreated_pod(self, managed: Managed, objects: ClusterObjects, server: FakeApiServer) -> None:
        async with managed():
            await served(objects, server, "web-0")
            before = len(server.requests)
            objects.remove_pod("web-0")
            vm = await served(objects, server, "web-0")
            await wait_until_processed(objects, server)
            succession = Counter(f"{verb} virtualmachines" for verb in ("delete", "create"))
            assert requests_since(server, before) == succession + MARK
            assert vm.uuid in stored_virtual_machines(server)

    async def test_for_a_virtual_machine_of_another_cluster(
        self, managed: Managed, objects: ClusterObjects, server: FakeApiServer, client: KubeClient
    ) -> None:
        await ensure_crds(client)
        vm = msgspec.structs.replace(a_machine("theirs", cluster="other"), interfaces=())
        await create(client, vm)
        async with managed():
            before = len(server.requests)
            remove_virtual_machine(server, "theirs")
            await wait_until_processed(objects, server)
            assert requests_since(server, before) == MARK


async def test_virtual_machines_that_others_delete_after_their_pods_are_not_restored(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """Whichever deletion is delivered first."""
    async with managed():
        for number in range(20):
            await served(objects, server, f"web-{number}")
            objects.remove_pod(f"web-{number}")
            remove_virtual_machine(server, f"web-{number}")
        await wait_until_processed(objects, server)
        await eventually(lambda: [vm.pod for vm in stored_virtual_machines(server).values()] == ["mark"])


class TestPodsThatAreGone:
    """What a source knows of a virtual machine's pod."""

    async def test_nothing_is_known_before_pods_are_listed(self, follow: Follow, server: FakeApiServer) -> None:
        server.faults.hung = True
        recorded = await follow()
        assert not recorded.source.is_gone(a_machine("web-0"))

    async def test_a_pod_missing_from_the_list_is_gone(self, follow: Follow, objects: ClusterObjects) -> None:
        vm = a_machine("web-0", uuid=objects.add_pod("web-0"))
        recorded = await follow()
        await recorded.until_listed()
        assert not recorded.source.is_gone(vm)
        assert recorded.source.is_gone(a_machine("web-0"))
        objects.remove_pod("web-0")
        await recorded.until(lambda: "-pod web-0" in recorded.lines())
        assert recorded.source.is_gone(vm)


@pytest.mark.usefixtures("buckets")
class TestDeletions:
    """Deletions that the watch delivers."""

    async def test_a_deletion_has_the_last_state(self, client: KubeClient, server: FakeApiServer) -> None:
        vm = await written(client, "web-0")
        async with deletions_of(client) as deletions:
            remove_virtual_machine(server, "web-0")
            assert await anext(deletions) == Removed(vm.uuid, vm)

    async def test_virtual_machines_of_gone_pods_are_skipped(self, client: KubeClient, server: FakeApiServer) -> None:
        gone, there = await written(client, "web-0"), await written(client, "web-1")
        async with deletions_of(client, gone) as deletions:
            for name in ("web-0", "web-1"):
                remove_virtual_machine(server, name)
            assert await anext(deletions) == Removed(there.uuid, there)

    async def test_reasons_of_waiting_pods_are_skipped(self, client: KubeClient, server: FakeApiServer) -> None:
        there = await written(client, "web-1")
        await create(client, msgspec.structs.replace(a_machine("web-0"), interfaces=(), pending=MISSING_NETWORK))
        async with deletions_of(client) as deletions:
            for name in ("web-0", "web-1"):
                remove_virtual_machine(server, name)
            assert await anext(deletions) == Removed(there.uuid, there)

    async def test_an_undecodable_virtual_machine_is_sent_without_its_state(
        self, client: KubeClient, server: FakeApiServer
    ) -> None:
        vm = await written(client, "web-0")
        kept = virtual_machine_item(server, "web-0")
        server.storage.put(VIRTUAL_MACHINE_KIND, {**kept, "spec": {"uuid": 1}})
        async with deletions_of(client) as deletions:
            server.remove(VIRTUAL_MACHINE_KIND, vm.uuid, namespace=node_bucket(vm.node))
            assert await anext(deletions) == Removed(vm.uuid, None)

    async def test_remaining_ones_are_sent_if_the_server_lost_its_history(
        self, client: KubeClient, server: FakeApiServer
    ) -> None:
        vms = [await written(client, f"web-{number}") for number in range(3)]
        async with deletions_of(client) as deletions:
            remove_virtual_machine(server, "web-0")
            server.storage.compact()
            assert await anext(deletions) == Remaining({one.uuid for one in vms[1:]})

    async def test_remaining_ones_are_sent_if_the_current_version_is_unknown(
        self, client: KubeClient, server: FakeApiServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        vm = await written(client, "web-0")
        server.faults.reject(403, verb="list")
        async with deletions_of(client) as deletions:
            assert await anext(deletions) == Remaining({vm.uuid})
        assert "listing all virtual machines" in caplog.text

    async def test_an_aborted_list_is_discarded(
        self, client: KubeClient, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        vms = [await written(client, f"web-{number}") for number in range(3)]
        pages = client.pages

        async def pages_that_end(*args: Any, **_: Any) -> AsyncGenerator[Any, None]:
            yield await anext(pages(*args, length=1))
            monkeypatch.setattr(client, "pages", pages)
            remove_virtual_machine(server, "web-0")
            raise KubeGoneError("the list took too long")

        async with deletions_of(client) as deletions:
            remove_virtual_machine(server, "web-1")
            server.storage.compact()
            monkeypatch.setattr(client, "pages", pages_that_end)
            assert await anext(deletions) == Remaining({vms[2].uuid})

    async def test_nothing_is_listed_otherwise(self, client: KubeClient, server: FakeApiServer) -> None:
        vms = [await written(client, f"web-{number}") for number in range(3)]
        server.requests.clear()
        async with deletions_of(client) as deletions:
            for vm in vms:
                remove_virtual_machine(server, vm.pod)
                assert await anext(deletions) == Removed(vm.uuid, vm)
                server.cut_watches()
        assert requests_since(server, 0) == {"list virtualmachines": 1, "watch virtualmachines": 3}
