"""An unreachable, rejecting or overloaded server: StoreUnavailableError with its cause, and a retry succeeds."""

import msgspec
import pytest

from contrail_config.errors import NotFoundError, StoreRejectedError, StoreUnavailableError
from contrail_config.kube.errors import KubeError, KubeForbiddenError, KubeThrottledError, KubeUnavailableError
from contrail_config.kubernetes.store import KubernetesStore
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.fake_apiserver.kinds import CRDS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.stored_objects import allocated_addresses, stored_virtual_machines
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod


@pytest.mark.parametrize(
    ("code", "cause"), [(429, KubeThrottledError), (500, KubeUnavailableError), (403, KubeForbiddenError)]
)
async def test_a_request_that_the_server_rejects_can_be_retried(
    manager: KubernetesStore, server: FakeApiServer, code: int, cause: type[KubeError]
) -> None:
    virtual_machine = make_virtual_machine()
    server.faults.reject(code, verb="create", times=4)
    with pytest.raises(StoreUnavailableError, match=virtual_machine.name) as caught:
        await manager.put_virtual_machine(virtual_machine)
    assert type(caught.value.__cause__) is cause
    server.faults.rejections.clear()
    await manager.put_virtual_machine(virtual_machine)


@pytest.mark.parametrize("verb", ["create", "update"])
async def test_addresses_that_could_not_be_written_are_allocated_to_the_next_owner(
    manager: KubernetesStore, server: FakeApiServer, verb: str
) -> None:
    network = await manager.put_network(make_network("tiny", "10.1.0.0/29"))
    if verb == "update":
        await allocate_one(manager, network)
    server.faults.reject(403, verb=verb)
    with pytest.raises(StoreUnavailableError, match="address block"):
        await allocate_one(manager, network)
    stored = allocated_addresses(server)
    for _ in range(5 - len(stored)):
        await allocate_one(manager, network)
    assert len(allocated_addresses(server)) == 5


@pytest.mark.parametrize("code", [400, 403, 413, 422])
async def test_a_rejected_object_has_an_error_of_its_own(
    manager: KubernetesStore, server: FakeApiServer, code: int
) -> None:
    server.faults.reject(code, verb="create", message="exceeded quota")
    with pytest.raises(StoreRejectedError, match="exceeded quota"):
        await manager.put_virtual_machine(make_virtual_machine())


async def test_an_owner_gets_the_address_that_another_manager_wrote(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    """The owner already has an address in a block that the second manager changed."""
    manager = await open_manager()
    network = await manager.put_network(make_network())
    await allocate_one(manager, network)
    other, owner = await open_manager(), new_owner()
    written = await allocate_one(other, network, owner)
    assert await allocate_one(manager, network, owner) == written


async def test_an_unreachable_server_is_a_temporary_error(manager: KubernetesStore, server: FakeApiServer) -> None:
    network = await manager.put_network(make_network())
    virtual_machine = await start_pod(manager, [network])
    await server.stop()
    with pytest.raises(StoreUnavailableError):
        await manager.virtual_machine(virtual_machine.uuid)
    await server.start()
    assert await manager.virtual_machine(virtual_machine.uuid) == virtual_machine


async def test_a_deleted_kind_is_not_found(manager: KubernetesStore, server: FakeApiServer) -> None:
    """The error is raised at once, without a retry: the kind does not come back by itself."""
    virtual_machine = make_virtual_machine()
    server.remove(CRDS, "virtualmachines.opencontrail.org", namespace="")
    with pytest.raises(NotFoundError, match=f"{virtual_machine.name}: POST "):
        await manager.put_virtual_machine(virtual_machine)
    assert server.requests.count("create namespaces") == 1


async def test_repeated_conflicts_are_reported_with_the_last_error(
    manager: KubernetesStore, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrail_config.kubernetes.retry_on_conflict._ATTEMPTS", 2)
    virtual_machine = make_virtual_machine()
    await manager.put_virtual_machine(virtual_machine)
    server.faults.conflicts = True
    with pytest.raises(
        StoreUnavailableError, match=r"changed by other writers in each of 2 attempts: PUT .*: 409 Conflict"
    ):
        await manager.put_virtual_machine(msgspec.structs.replace(virtual_machine, node="worker-9"))


async def test_a_virtual_machine_deleted_during_its_replacement_is_recreated(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    virtual_machine = make_virtual_machine()
    await manager.put_virtual_machine(virtual_machine)
    server.faults.reject(404, verb="update")
    moved = msgspec.structs.replace(virtual_machine, node="worker-9")
    await manager.put_virtual_machine(moved)
    assert stored_virtual_machines(server)[virtual_machine.uuid] == moved


async def test_a_closed_store_rejects_every_call(manager: KubernetesStore) -> None:
    await manager.close()
    await manager.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await manager.networks()
    with pytest.raises(StoreUnavailableError, match="closed"):
        async with manager.watch_virtual_machines():
            pass


async def test_a_missing_virtual_machine_raises_not_found(manager: KubernetesStore) -> None:
    with pytest.raises(NotFoundError):
        await manager.virtual_machine(new_owner())
