"""A watcher may be slow; a stuck one ends with an error, and no other one is delayed."""

import asyncio

import pytest

from contrail_config.embedded import change_feed, watcher
from contrail_config.embedded.engine import Engine
from contrail_config.embedded.store import SqliteStore
from contrail_config.embedded.worker import Worker
from contrail_config.errors import StoreUnavailableError
from contrail_config.store import ChangeType, WatchStart
from tests.contrail_config.store_machine import check
from tests.contrail_config.watch_machine import WatchMachine
from tests.support.stores import open_embedded
from tests.support.virtual_machines import make_virtual_machine


async def test_a_stuck_watcher_ends_with_an_error(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "MAX_BEHIND", 20)
    async with store.watch_virtual_machines(start=WatchStart.NOW) as stuck, store.watch_virtual_machines() as quick:
        assert (await anext(quick)).type is ChangeType.SYNCED
        for n in range(21):
            await store.put_virtual_machine(make_virtual_machine(f"p{n}"))
            assert (await anext(quick)).type is ChangeType.ADDED
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="more than 20 changes behind"):
                await anext(stuck)
    async with store.watch_virtual_machines() as restarted:
        assert len([await anext(restarted) for _ in range(22)]) == 22


async def test_a_list_longer_than_the_bound_is_read_completely(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "MAX_BEHIND", 20)
    monkeypatch.setattr(change_feed, "PAGE", 10)
    await asyncio.gather(*(store.put_virtual_machine(make_virtual_machine(f"p{n}")) for n in range(105)))
    async with store.watch_virtual_machines() as changes:
        seen = [await anext(changes) for _ in range(106)]
    assert seen[-1].type is ChangeType.SYNCED
    assert len({change.object.uuid for change in seen if change.object}) == 105


async def test_an_error_of_the_list_ends_the_watch(store: SqliteStore, worker: Worker, engine: Engine) -> None:
    await store.put_virtual_machine(make_virtual_machine())
    await worker.run(lambda: engine.database.connection.execute("DROP TABLE machines").close(), writes=False)
    async with store.watch_virtual_machines() as changes:
        with pytest.raises(StoreUnavailableError, match="no such table"):
            await anext(changes)


def test_watchers_with_many_pages_match_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_feed, "PAGE", 2)
    check(WatchMachine, open_embedded, examples=50, steps=40)
