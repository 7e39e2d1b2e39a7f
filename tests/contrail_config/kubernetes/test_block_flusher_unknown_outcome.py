"""Block flusher: a block was written without a response, and its content is found by the next operation."""

import pytest
from aiohttp import web

from contrail_config.errors import StoreError, StoreUnavailableError
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualNetwork
from tests.support.address_blocks import hold_seconds
from tests.support.fake_apiserver.faults import Faults
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.stored_objects import BLOCK_KIND, allocated_addresses
from tests.support.virtual_networks import allocate_one, make_network, new_owner


class LostResponse(Faults):
    """Performs the next block write without a response and rejects its retry; watches report nothing."""

    def __init__(self, code: int = 403) -> None:
        super().__init__(silent=True, lost_responses_to=[BLOCK_KIND.plural])
        self._code = code

    def lose_response(self, request: web.Request, kind: Kind) -> None:
        if kind.plural in self.lost_responses_to:
            self.reject(self._code, verb="update", times=4, retry_after=60)  # longer than the client waits
        super().lose_response(request, kind)


@pytest.fixture
async def network(manager: KubernetesStore) -> VirtualNetwork:
    return await manager.put_network(make_network())


async def allocate_without_response(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer, faults: Faults | None = None
) -> str:
    """Allocates an address for an owner that gets an error although the block is written."""
    owner = new_owner()
    server.faults.silent = True  # also of existing watches
    server.faults = faults or LostResponse()
    with pytest.raises(StoreUnavailableError, match="address block"):
        await allocate_one(manager, network, owner)
    assert owner in allocated_addresses(server).values()
    server.faults.rejections.clear()
    return owner


@pytest.mark.parametrize("verb", ["create", "update"])
async def test_a_released_owner_has_no_address(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer, verb: str
) -> None:
    if verb == "update":
        await allocate_one(manager, network)
    before = allocated_addresses(server)
    owner = await allocate_without_response(manager, network, server)
    await manager.release([owner], hold=0.0)
    assert allocated_addresses(server) == before


async def test_a_throttled_retry_does_not_decide_the_first_attempt(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    await allocate_one(manager, network)
    before = allocated_addresses(server)
    owner = await allocate_without_response(manager, network, server, LostResponse(429))
    await manager.release([owner], hold=0.0)
    assert allocated_addresses(server) == before


async def test_a_retry_returns_the_written_address(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    await allocate_one(manager, network)
    owner = await allocate_without_response(manager, network, server)
    assert allocated_addresses(server)[network.uuid, await allocate_one(manager, network, owner)] == owner
    assert len(allocated_addresses(server)) == 2


async def test_address_owners_include_the_written_owner(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    owner = await allocate_without_response(manager, network, server)
    assert await manager.address_owners() == {owner}


async def test_a_release_without_response_can_be_retried(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    held = await allocate_without_response(
        manager, network, server, Faults(silent=True, lost_responses_to=[BLOCK_KIND.plural])
    )
    server.faults = LostResponse()
    with pytest.raises(StoreUnavailableError):
        await manager.release([held], hold=9.0)
    server.faults.rejections.clear()
    assert allocated_addresses(server) == {}
    assert hold_seconds(server.storage.objects(BLOCK_KIND).values(), held) == pytest.approx(9.0, abs=1)


async def test_an_unreadable_block_fails_every_operation(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    owner = await allocate_without_response(manager, network, server)
    server.faults.reject(403, verb="get")
    with pytest.raises(StoreUnavailableError, match="address block"):
        await manager.release([owner], hold=0.0)
    await manager.release([owner], hold=0.0)
    assert allocated_addresses(server) == {}


async def test_a_network_keeps_the_subnet_of_a_written_address(manager: KubernetesStore, server: FakeApiServer) -> None:
    network = await manager.put_network(make_network("left", "10.1.0.0/24", "10.2.0.0/24"))
    owner = await allocate_without_response(manager, network, server)
    with pytest.raises(StoreError, match="the address is allocated"):
        await manager.put_network(make_network("left", "10.2.0.0/24"))
    await manager.release([owner], hold=0.0)
    await manager.put_network(make_network("left", "10.2.0.0/24"))


async def test_a_block_that_becomes_invalid_affects_no_other_block(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    await allocate_without_response(manager, network, server)
    ((_, name),) = server.storage.objects(BLOCK_KIND)
    invalid = {"network": network.uuid, "first": "10.1.0.0", "addresses": "nonsense o\n"}
    server.put(BLOCK_KIND, name, namespace="", spec=invalid)
    other = await manager.put_network(make_network("other", "10.2.0.0/24"))
    assert await allocate_one(manager, other) == "10.2.0.2"
    assert "invalid content" in caplog.text


async def test_an_unexpected_error_during_a_write_loses_no_address(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = new_owner()
    with monkeypatch.context() as broken:
        broken.setattr(AllocationCache, "mark_written", _fail)
        with pytest.raises(StoreUnavailableError, match="commit failed"):
            await allocate_one(manager, network, owner)
    server.faults.silent = True
    await manager.release([owner], hold=0.0)
    assert allocated_addresses(server) == {}


def _fail(*_: object) -> None:
    raise ZeroDivisionError
