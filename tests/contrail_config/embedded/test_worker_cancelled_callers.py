"""A cancelled caller leaves the store consistent: its operation is performed completely or not at all."""

import asyncio
import contextlib
import gc
import random
from functools import partial
from pathlib import Path

from contrail_config.embedded.engine import Engine
from contrail_config.embedded.rows import Row, RowChange, Table
from contrail_config.embedded.store import SqliteStore
from contrail_config.embedded.watcher import Watcher
from contrail_config.embedded.worker import Worker
from contrail_config.errors import StoreUnavailableError
from contrail_config.store import ChangeType, WatchStart
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod


async def test_callers_cancelled_at_random_leave_no_address_behind(store: SqliteStore) -> None:
    networks = [await store.put_network(make_network(name)) for name in ("left", "right")]
    chance = random.Random(1)
    for _ in range(10):
        pods = [asyncio.ensure_future(start_pod(store, networks, f"p{n}")) for n in range(20)]
        for _ in range(chance.randint(0, 3)):
            await asyncio.sleep(0)
        for pod in chance.sample(pods, 10):
            pod.cancel()
        await asyncio.wait(pods)
        virtual_machines = await store.virtual_machines()
        owners = {interface.uuid for virtual_machine in virtual_machines for interface in virtual_machine.interfaces}
        allocated = await store.address_owners()
        assert owners <= allocated
        for virtual_machine in virtual_machines:
            await store.delete_virtual_machine(virtual_machine.uuid, hold=0)
        await store.release(list(allocated - owners), hold=0)
    assert await store.address_owners() == set()
    assert len({await allocate_one(store, networks[0]) for _ in range(253)}) == 253


async def test_a_cancelled_write_is_finished_before_the_next_operation(store: SqliteStore) -> None:
    virtual_machine = make_virtual_machine()
    writing = asyncio.ensure_future(store.put_virtual_machine(virtual_machine))
    await asyncio.sleep(0)
    writing.cancel()
    assert await store.virtual_machines() == [virtual_machine]


async def test_a_cancelled_owner_gets_the_same_address_again(store: SqliteStore) -> None:
    network = await store.put_network(make_network())
    owner = new_owner()
    asking = asyncio.ensure_future(allocate_one(store, network, owner))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    assert await allocate_one(store, network, owner) == "10.1.0.2"
    assert await allocate_one(store, network) == "10.1.0.3"


def live_watchers() -> int:
    gc.collect()
    return sum(isinstance(item, Watcher) for item in gc.get_objects())


async def test_a_watch_cancelled_during_its_start_is_removed(
    store: SqliteStore, worker: Worker, engine: Engine
) -> None:
    async def watch() -> None:
        async with store.watch_virtual_machines():
            raise AssertionError("not cancelled")

    watchers_before = live_watchers()
    for _ in range(5):
        watching = asyncio.ensure_future(watch())
        await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait([watching])
        assert watching.cancelled()
        del watching  # and with it the frames of the watch
    change = RowChange(Table.VIRTUAL_MACHINES, "uuid", old=None, new=Row(b"{}"))
    route = partial(engine.feed.route, [change])  # runs after the watchers were removed, in the order of the queue
    assert await worker.run(route, writes=False) == []
    assert live_watchers() <= watchers_before


async def test_a_cancelled_open_releases_the_file(path: Path) -> None:
    for _ in range(5):
        opening = asyncio.ensure_future(SqliteStore.open(path))
        await asyncio.sleep(0)
        opening.cancel()
        await asyncio.wait([opening])
    await (await open_when_free(path)).close()


async def open_when_free(path: Path) -> SqliteStore:
    """Retries until the cancelled open, which closes in its thread, has released the file."""
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(StoreUnavailableError):
                return await SqliteStore.open(path)
            await asyncio.sleep(0.01)


async def test_other_watchers_continue_when_one_leaves_during_its_list(store: SqliteStore) -> None:
    for n in range(300):
        await store.put_virtual_machine(make_virtual_machine(f"p{n}"))
    async with store.watch_virtual_machines(start=WatchStart.NOW) as stays:
        async with store.watch_virtual_machines() as leaves:
            await anext(leaves)
        await store.put_virtual_machine(make_virtual_machine("new"))
        assert (await anext(stays)).type is ChangeType.ADDED
