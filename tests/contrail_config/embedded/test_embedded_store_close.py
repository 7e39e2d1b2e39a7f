"""Closing finishes pending operations; afterwards every call is rejected."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from contrail_config.embedded.engine import Engine
from contrail_config.embedded.store import SqliteStore
from contrail_config.embedded.worker import Worker
from contrail_config.errors import StoreUnavailableError
from contrail_config.objects import Event, EventType
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import make_network, request

EVENT = Event("Pod", "default", "web", "uid-1", EventType.NORMAL, "Ready", "ready", 1, 0.0, 0.0)


async def watch(store: SqliteStore) -> None:
    async with store.watch_virtual_machines():
        pass


Call = Callable[[SqliteStore], Awaitable[object]]

CALLS: dict[str, Call] = {
    "put_network": lambda store: store.put_network(make_network()),
    "delete_network": lambda store: store.delete_network("x"),
    "networks": lambda store: store.networks(),
    "put_virtual_machine": lambda store: store.put_virtual_machine(make_virtual_machine()),
    "delete_virtual_machine": lambda store: store.delete_virtual_machine("x"),
    "virtual_machine": lambda store: store.virtual_machine("x"),
    "virtual_machines": lambda store: store.virtual_machines(),
    "allocate": lambda store: store.allocate([request(make_network())]),
    "release": lambda store: store.release(["x"]),
    "shorten_holds": lambda store: store.shorten_holds(["x"]),
    "address_owners": lambda store: store.address_owners(),
    "watch": watch,
    "record_event": lambda store: store.record_event(EVENT),
    "events": lambda store: store.events(),
    "identities": lambda store: store.identities(),
    "remember_identity": lambda store: store.remember_identity("Pod", "default", "web", "uid-1"),
    "forget_identity": lambda store: store.forget_identity("Pod", "default", "web"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_every_call_after_close_is_rejected(
    store: SqliteStore, path: Path, call: Callable[[SqliteStore], Awaitable[object]]
) -> None:
    await store.close()
    with pytest.raises(StoreUnavailableError, match=f"{path} is closed"):
        await call(store)


async def test_pending_operations_are_finished(store: SqliteStore, path: Path) -> None:
    pending = [asyncio.ensure_future(store.put_virtual_machine(make_virtual_machine(f"p{n}"))) for n in range(100)]
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*pending) == [None] * 100
    reopened = await SqliteStore.open(path)
    assert len(await reopened.virtual_machines()) == 100
    await reopened.close()


async def test_close_is_idempotent_also_concurrently(store: SqliteStore) -> None:
    await asyncio.gather(store.close(), store.close())
    await store.close()


async def test_a_cancelled_close_continues(store: SqliteStore, path: Path) -> None:
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    await store.close()
    await (await SqliteStore.open(path)).close()


async def test_no_thread_is_left(store: SqliteStore) -> None:
    workers = [thread for thread in threading.enumerate() if thread.name.startswith("store ")]
    await store.close()
    for worker in workers:
        await asyncio.to_thread(worker.join, 5)
        assert not worker.is_alive()


async def open_with_worker(path: Path) -> tuple[SqliteStore, Worker]:
    worker = Worker(partial(Engine, str(path), clock=time.time), name=f"store {path}")
    return SqliteStore(worker, await worker.start()), worker


def test_the_thread_finishes_although_the_loop_is_closed(path: Path) -> None:
    """The thread performs the last operation although nobody waits for the result."""
    with asyncio.Runner() as runner:
        store, worker = runner.run(open_with_worker(path))
        thread = next(thread for thread in threading.enumerate() if thread.name == f"store {path}")
        writing = runner.get_loop().create_task(store.put_virtual_machine(make_virtual_machine()))
        runner.run(asyncio.sleep(0))
        writing.cancel()
        worker.request_stop()
    thread.join(5)
    assert not thread.is_alive()
    with asyncio.Runner() as runner:
        store = runner.run(SqliteStore.open(path))
        assert len(runner.run(store.virtual_machines())) == 1
        runner.run(store.close())
