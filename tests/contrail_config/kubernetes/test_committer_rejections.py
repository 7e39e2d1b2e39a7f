"""Committer: the reason of a rejected operation is reported whatever other writes fail at the same time."""

import asyncio

import pytest

from contrail_config.errors import AddressUnavailableError, ExhaustedError, StoreUnavailableError
from contrail_config.kubernetes.allocation_cache import CLEANUP_DELAY
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualNetwork
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.stored_objects import BLOCK_KIND, allocated_addresses
from tests.support.virtual_networks import allocate_one, make_network, new_owner

ALWAYS = 100_000


@pytest.fixture
async def tiny(manager: KubernetesStore) -> VirtualNetwork:
    """A network whose only address is allocated."""
    network = await manager.put_network(make_network("tiny", "10.1.0.0/30"))
    await allocate_one(manager, network)
    return network


@pytest.fixture
async def emptied(manager: KubernetesStore, clock: FakeClock) -> VirtualNetwork:
    """Another network, with an empty block on the server."""
    network = await manager.put_network(make_network("emptied", "10.2.0.0/24"))
    owner = new_owner()
    await allocate_one(manager, network, owner)
    await manager.release([owner], hold=1.0)
    clock.advance(5)
    await manager.release([new_owner()])  # its hold is removed, and its clean-up is due after this time
    clock.advance(CLEANUP_DELAY)
    return network


@pytest.mark.parametrize("code", [403, 422, 409])
async def test_the_reason_is_reported_despite_an_undeletable_empty_block(
    manager: KubernetesStore, server: FakeApiServer, tiny: VirtualNetwork, emptied: VirtualNetwork, code: int
) -> None:
    server.faults.reject(code, verb="delete", times=ALWAYS)
    with pytest.raises(ExhaustedError):
        await allocate_one(manager, tiny)
    with pytest.raises(AddressUnavailableError):
        await allocate_one(manager, tiny, address="10.1.0.2")


async def test_the_reason_is_reported_despite_unwritable_addresses(
    manager: KubernetesStore, server: FakeApiServer, tiny: VirtualNetwork, emptied: VirtualNetwork
) -> None:
    server.faults.reject(403, verb="update", times=ALWAYS)
    pending = [allocate_one(manager, network) for network in (emptied, tiny, emptied)]
    first, exhausted, last = await asyncio.gather(*pending, return_exceptions=True)
    assert isinstance(first, StoreUnavailableError)
    assert isinstance(exhausted, ExhaustedError)
    assert isinstance(last, StoreUnavailableError)


async def test_the_reason_is_reported_despite_permanent_conflicts(
    manager: KubernetesStore,
    server: FakeApiServer,
    tiny: VirtualNetwork,
    emptied: VirtualNetwork,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("contrail_config.kubernetes.committer._ATTEMPTS", 3)
    server.faults.conflicts = True
    pending = [allocate_one(manager, network) for network in (emptied, tiny)]
    contended, exhausted = await asyncio.gather(*pending, return_exceptions=True)
    assert isinstance(contended, StoreUnavailableError)
    assert "changed by other writers" in str(contended)
    assert isinstance(exhausted, ExhaustedError)


async def test_the_deletion_of_an_empty_block_is_retried_after_five_minutes(
    manager: KubernetesStore,
    server: FakeApiServer,
    clock: FakeClock,
    tiny: VirtualNetwork,
    emptied: VirtualNetwork,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.faults.reject(403, verb="delete", times=2)
    for _ in range(5):
        await manager.release([new_owner()])
    assert server.requests.count("delete addressblocks") == 1
    assert caplog.text.count("clean-up, next attempt in 300 s") == 1
    clock.advance(CLEANUP_DELAY)
    await manager.release([new_owner()])
    assert server.requests.count("delete addressblocks") == 2
    clock.advance(CLEANUP_DELAY)
    await manager.release([new_owner()])
    assert len(server.storage.objects(BLOCK_KIND)) == 1


async def test_addresses_are_allocated_in_an_undeletable_empty_block(
    manager: KubernetesStore, server: FakeApiServer, emptied: VirtualNetwork
) -> None:
    server.faults.reject(403, verb="delete", times=ALWAYS)
    await manager.release([new_owner()])
    owner = new_owner()
    assert allocated_addresses(server) == {}
    address = await allocate_one(manager, emptied, owner)
    assert allocated_addresses(server) == {(emptied.uuid, address): owner}
