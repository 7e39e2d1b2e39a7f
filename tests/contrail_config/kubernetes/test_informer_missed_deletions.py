"""Informers: an object is deleted before the watch has reported its creation, so the next list misses its deletion."""

import msgspec
import pytest

from contrail_config.errors import NotFoundError
from contrail_config.kubernetes import informer
from contrail_config.kubernetes.allocation_cache import CLEANUP_DELAY
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualNetwork
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import BLOCK_KIND, VIRTUAL_NETWORK_KIND
from tests.support.virtual_networks import allocate_one, make_network, new_owner


@pytest.fixture
async def network(manager: KubernetesStore, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> VirtualNetwork:
    """A network with an allocated address. The watches have reported both, and report nothing further."""
    monkeypatch.setattr(informer, "OBSERVE_DEADLINE", 0.1)
    network = await manager.put_network(make_network())
    await allocate_one(manager, network)
    await eventually(lambda: len(server.watches) == 2)
    await until_reported(server)
    server.faults.silent = True
    return network


async def until_reported(server: FakeApiServer) -> None:
    """Waits until the watches have reported all changes."""
    server.faults.silent = False
    server.storage.notify()
    kinds = (VIRTUAL_NETWORK_KIND, BLOCK_KIND)
    pending = [(watch, kind) for watch in server.watches for kind in kinds if watch.is_of(kind)]
    await eventually(lambda: not any(server.storage.since(watch.last_revision, kind) for watch, kind in pending))


async def until_listed_again(server: FakeApiServer, kind: Kind) -> None:
    """Waits until all objects are listed again."""
    watches = server.requests.count(f"watch {kind.plural}")
    server.faults.silent = False
    server.forget_history()
    await eventually(lambda: server.requests.count(f"watch {kind.plural}") > watches)


async def test_uncertain_networks_are_read_before_an_allocation(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    stays = await manager.put_network(make_network("stays", "10.2.0.0/24"))
    created = await manager.put_network(make_network("created", "10.3.0.0/24"))
    changed = await manager.put_network(msgspec.structs.replace(network, mtu=1400))
    for gone in (created, changed):
        server.remove(VIRTUAL_NETWORK_KIND, gone.uuid, namespace="")
    await until_listed_again(server, VIRTUAL_NETWORK_KIND)
    for gone in (created, changed):
        with pytest.raises(NotFoundError):
            await allocate_one(manager, gone)
    assert await allocate_one(manager, stays) == "10.2.0.2"


async def test_networks_known_from_the_watch_are_not_read(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    await until_listed_again(server, VIRTUAL_NETWORK_KIND)
    server.requests.clear()
    await allocate_one(manager, network)
    assert "get virtualnetworks" not in server.requests


async def test_a_recreated_network_outlives_the_late_deletion_event_of_its_predecessor(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    await manager.release(list(await manager.address_owners()), hold=0.0)
    await manager.delete_network(network.uuid)
    recreated = await manager.put_network(network)
    await until_reported(server)
    await allocate_one(manager, recreated)


async def test_a_recreated_block_outlives_the_late_deletion_event_of_its_predecessor(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork, clock: FakeClock
) -> None:
    await manager.release(list(await manager.address_owners()), hold=0.0)
    clock.advance(CLEANUP_DELAY)
    await manager.address_owners()
    assert not server.storage.objects(BLOCK_KIND)
    owner = new_owner()
    await allocate_one(manager, network, owner)
    await until_reported(server)
    assert await manager.address_owners() == {owner}
