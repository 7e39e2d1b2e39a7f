"""Pending virtual machines as objects: in the place of the complete one, by version, with low priority."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from contrail_config.errors import NotFoundError, StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.node_buckets import node_bucket
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import Pending, VirtualMachine
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.fake_apiserver.kinds import NAMESPACES
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.stored_objects import VIRTUAL_MACHINE_KIND, allocated_addresses, virtual_machine_item
from tests.support.virtual_machines import make_pending, make_virtual_machine
from tests.support.virtual_networks import make_network, start_pod

OTHER = Pending("AddressesExhausted", "no free IPv4 address")


def before_first(monkeypatch: pytest.MonkeyPatch, verb: str, action: Callable[[], Awaitable[None]]) -> None:
    """Runs the action before the first request of this verb that any client sends from now on."""
    original = getattr(KubeClient, verb)

    async def request(client: KubeClient, *arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(KubeClient, verb, original)
        await action()
        return await original(client, *arguments, **options)

    monkeypatch.setattr(KubeClient, verb, request)


@pytest.fixture
def pending() -> VirtualMachine:
    return make_pending("web")


@pytest.fixture
def complete(pending: VirtualMachine) -> VirtualMachine:
    """The same pod once it has interfaces."""
    return make_virtual_machine("web", uid=pending.uuid)


async def test_it_has_the_place_and_the_labels_of_the_complete_one(
    manager: KubernetesStore, server: FakeApiServer, pending: VirtualMachine, complete: VirtualMachine
) -> None:
    await manager.put_pending(pending)
    first = virtual_machine_item(server, "web", namespace="default")
    assert (first["metadata"]["namespace"], first["metadata"]["name"]) == (node_bucket(pending.node), pending.uuid)
    assert first["spec"]["pending"] == msgspec.to_builtins(pending.pending)
    await manager.put_virtual_machine(complete)
    second = virtual_machine_item(server, "web", namespace="default")
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["metadata"]["labels"] == first["metadata"]["labels"]
    assert "pending" not in second["spec"]


async def test_a_pod_that_waited_costs_three_writes(
    manager: KubernetesStore, server: FakeApiServer, pending: VirtualMachine, complete: VirtualMachine
) -> None:
    await manager.put_pending(pending)
    await manager.put_virtual_machine(complete)
    await manager.delete_virtual_machine(complete.uuid)
    assert server.storage.objects(VIRTUAL_MACHINE_KIND) == {}
    assert len(list(server.storage.since(0, VIRTUAL_MACHINE_KIND))) == 3


async def test_the_bucket_of_the_node_is_created(
    manager: KubernetesStore, server: FakeApiServer, pending: VirtualMachine
) -> None:
    server.remove(NAMESPACES, node_bucket(pending.node), namespace="")
    await manager.put_pending(pending)
    assert virtual_machine_item(server, "web", namespace="default")["spec"]["uuid"] == pending.uuid


async def test_it_is_not_cached_as_a_virtual_machine(
    open_manager: OpenManager, pending: VirtualMachine, complete: VirtualMachine
) -> None:
    """Its pod may be recreated under its name, and another manager may complete it."""
    first, second = await open_manager(), await open_manager()
    await first.put_pending(pending)
    assert list(await second.recover_virtual_machines()) == [pending]
    with pytest.raises(NotFoundError):
        await second.virtual_machine(pending.uuid)
    await first.put_virtual_machine(complete)
    await second.delete_virtual_machine(pending.uuid)
    await second.put_virtual_machine(make_virtual_machine("web"))


async def test_addresses_of_a_pod_that_waited_are_released_with_it(
    manager: KubernetesStore, server: FakeApiServer, pending: VirtualMachine
) -> None:
    network = await manager.put_network(make_network())
    await manager.put_pending(pending)
    await start_pod(manager, [network], uid=pending.uuid, pod="web")
    await manager.delete_virtual_machine(pending.uuid)
    assert allocated_addresses(server) == {}


async def test_one_completed_between_read_and_write_stays(
    manager: KubernetesStore, pending: VirtualMachine, complete: VirtualMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for verb, write in (("replace", manager.put_pending), ("delete", manager.delete_pending)):
        await manager.delete_virtual_machine(complete.uuid)
        await manager.put_pending(pending)
        before_first(monkeypatch, verb, lambda: manager.put_virtual_machine(complete))
        await write(msgspec.structs.replace(pending, pending=OTHER))
        assert await manager.virtual_machines() == [complete]


async def test_one_deleted_between_read_and_write_is_created_again(
    manager: KubernetesStore, pending: VirtualMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await manager.put_pending(pending)
    before_first(monkeypatch, "replace", lambda: manager.delete_pending(pending))
    other = msgspec.structs.replace(pending, pending=OTHER)
    await manager.put_pending(other)
    assert list(await manager.recover_virtual_machines()) == [other]


async def test_an_object_of_another_uuid_or_content_in_its_place_is_left_alone(
    manager: KubernetesStore, server: FakeApiServer, pending: VirtualMachine
) -> None:
    await manager.put_pending(pending)
    item = virtual_machine_item(server, "web", namespace="default")
    for spec in ({**item["spec"], "uuid": "another"}, {"uuid": 1}):
        server.storage.put(VIRTUAL_MACHINE_KIND, {**item, "spec": spec})
        await manager.put_pending(msgspec.structs.replace(pending, pending=OTHER))
        await manager.delete_pending(pending)
        ((_, kept),) = server.storage.objects(VIRTUAL_MACHINE_KIND).items()
        assert kept["spec"] == spec


async def test_a_rejected_write_is_a_store_error(
    manager: KubernetesStore, server: FakeApiServer, pending: VirtualMachine
) -> None:
    server.faults.reject(403, verb="create")
    with pytest.raises(StoreUnavailableError, match="pending virtual machine k8s__default__web"):
        await manager.put_pending(pending)
