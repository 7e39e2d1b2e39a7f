"""Closing the store, or cancelling a caller, before the first list has arrived: no task is left."""

import asyncio

import pytest

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.object_cache import Listed, ObjectChange
from contrail_config.kubernetes.kinds import VirtualNetworkObject
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.kubernetes.virtual_networks import VirtualNetworkClient
from contrail_config.kubernetes.watcher import Watcher
from contrail_config.objects import VirtualNetwork
from contrail_config.store import WatchStart
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.virtual_networks import allocate_one, make_network

SOON = 4.0  # seconds; the timeout of the first list is a minute


@pytest.fixture
async def network(open_manager: OpenManager) -> VirtualNetwork:
    """A network of another manager."""
    return await (await open_manager()).put_network(make_network())


@pytest.fixture
async def idle(network: VirtualNetwork, open_manager: OpenManager, monkeypatch: pytest.MonkeyPatch) -> KubernetesStore:
    """A manager that has read nothing yet, with a short timeout of the last list."""
    monkeypatch.setattr("contrail_config.kubernetes.watcher._DRAIN_DEADLINE", 0.05)
    return await open_manager()


def followers() -> set[object]:
    """Tasks that follow a kind."""
    names = ("Watcher._run", "Informer._run")
    return {task for task in asyncio.all_tasks() if any(name in repr(task.get_coro()) for name in names)}


async def watch(manager: KubernetesStore) -> list[object]:
    async with manager.watch_networks(start=WatchStart.NOW) as changes:
        return [change async for change in changes]


async def until_listing(server: FakeApiServer) -> None:
    await eventually(lambda: "list virtualnetworks" in server.requests)


async def test_a_cancelled_watch_leaves_no_task(idle: KubernetesStore, server: FakeApiServer) -> None:
    before = followers()
    server.requests.clear()
    server.faults.hung = True
    reader = asyncio.create_task(watch(idle))
    await until_listing(server)
    reader.cancel()
    await asyncio.wait([reader])
    assert followers() == before


@pytest.mark.parametrize("answers_again", [True, False])
async def test_a_watch_ends_when_the_store_is_closed(
    idle: KubernetesStore, server: FakeApiServer, *, answers_again: bool
) -> None:
    before = followers()
    server.requests.clear()
    server.faults.hung = True
    reader = asyncio.create_task(watch(idle))
    await until_listing(server)
    server.faults.hung = not answers_again
    async with asyncio.timeout(SOON):
        await idle.close()
        assert await reader == []
    assert followers() == before


async def test_a_watch_reports_an_unexpected_error(
    idle: KubernetesStore, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watcher, "_report", _fail)
    async with asyncio.timeout(SOON):
        with pytest.raises(StoreUnavailableError, match="unexpected error"):
            await watch(idle)


async def test_a_pending_allocation_fails_when_the_store_is_closed(
    idle: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    before = followers()
    server.requests.clear()
    server.faults.hung = True
    asked = asyncio.create_task(allocate_one(idle, network))
    await until_listing(server)
    await idle.close()
    async with asyncio.timeout(SOON):
        with pytest.raises(StoreUnavailableError, match="closed"):
            await asked
    assert followers() == before


async def test_a_pending_allocation_reads_nothing_after_close(
    network: VirtualNetwork, open_manager: OpenManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The networks are listed, and the address blocks would be listed next."""
    listed, apply = asyncio.Event(), VirtualNetworkClient.apply

    def apply_and_note(networks: VirtualNetworkClient, change: ObjectChange[VirtualNetworkObject]) -> None:
        apply(networks, change)
        if isinstance(change, Listed):
            listed.set()

    monkeypatch.setattr(VirtualNetworkClient, "apply", apply_and_note)
    idle = await open_manager()
    before = followers()
    asked = asyncio.create_task(allocate_one(idle, network))
    await listed.wait()
    closing = asyncio.create_task(idle.close())
    await asyncio.wait([asked, closing], timeout=SOON)
    assert isinstance(asked.exception(), StoreUnavailableError)
    assert followers() == before


def _fail(*_: object) -> None:
    raise ZeroDivisionError
