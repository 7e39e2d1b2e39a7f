"""An unexpected error must not block anybody: pending callers get an error, and the next call succeeds."""

import pytest

from contrail_config.errors import StoreUnavailableError
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.kubernetes.watcher import Watcher
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import allocate_one, make_network


class BugError(Exception):
    """An unexpected error."""


def fail(*_args: object, **_kwargs: object) -> None:
    raise BugError


async def test_a_failed_commit_fails_the_pending_allocation(
    manager: KubernetesStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = await manager.put_network(make_network())
    with monkeypatch.context() as broken:
        broken.setattr(AllocationCache, "blocks_to_write", fail)
        with pytest.raises(StoreUnavailableError, match="commit failed"):
            await allocate_one(manager, network)
    assert await allocate_one(manager, network) == "10.1.0.2"


async def test_a_failed_plan_fails_its_allocation(manager: KubernetesStore, monkeypatch: pytest.MonkeyPatch) -> None:
    network = await manager.put_network(make_network())
    with monkeypatch.context() as broken:
        broken.setattr(AllocationCache, "allocated", fail)
        with pytest.raises(BugError):
            await allocate_one(manager, network)
    await allocate_one(manager, network)


async def test_a_failed_watch_raises_an_error(manager: KubernetesStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await manager.put_virtual_machine(make_virtual_machine())
    monkeypatch.setattr(Watcher, "_report", fail)
    async with manager.watch_virtual_machines() as changes:
        with pytest.raises(StoreUnavailableError, match="unexpected error") as caught:
            await anext(changes)
    assert isinstance(caught.value.__cause__, BugError)


async def test_a_failed_informer_is_restarted(
    open_manager: OpenManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = await open_manager(), await open_manager()
    network = await first.put_network(make_network())
    await allocate_one(first, network)
    monkeypatch.setattr("contrail_config.kubernetes.informer.DEADLINE", 0.2)
    with monkeypatch.context() as broken:
        broken.setattr(AllocationCache, "apply_update", fail)
        with pytest.raises(StoreUnavailableError):
            await allocate_one(second, network)
    assert "informer of addressblocks: unexpected error" in caplog.text
    assert await allocate_one(second, network) == "10.1.0.3"
