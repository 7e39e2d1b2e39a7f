"""An agent on a real store. Blocking the event loop is an error, except in `..._nowait` changes."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster

from agent_api.serial_executor import SerialExecutor
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.support.blocking_calls import blocking_calls_rejected
from tests.support.served_agent import ServedAgent, serve_agent, until
from tests.support.virtual_machines import SAMPLE_VM, left_interface, make_virtual_machine, sample_interface

StartAgent = Callable[..., Awaitable[ServedAgent]]
WaitForSync = Callable[[], Awaitable[None]]


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[BlockBuster]:
    with blocking_calls_rejected("agent_api", "contrail_service") as blockbuster:
        for function in blockbuster.functions.values():
            function.can_block_in("agent_api/ports/table.py", {"_change_nowait", "_prepare_nowait"})
        yield blockbuster


@contextlib.asynccontextmanager
async def change_in_progress(executor: SerialExecutor) -> AsyncIterator[None]:
    """Holds up all further changes of the table until the context is left."""
    release = asyncio.Event()

    async def change() -> None:
        await release.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(executor.run(change))
        await until(lambda: len(executor) == 1)
        try:
            yield
        finally:
            release.set()


@pytest.fixture
async def start_agent(store: SqliteStore, tmp_path: Path) -> AsyncIterator[StartAgent]:
    """Starts an agent on the store; options are those of `serve_agent`."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(**options: Any) -> ServedAgent:
            return await stack.enter_async_context(serve_agent(store, tmp_path, **options))

        yield start


@pytest.fixture
async def served(start_agent: StartAgent) -> ServedAgent:
    return await start_agent()


@pytest.fixture
def wait_for_sync(store: SqliteStore, served: ServedAgent) -> WaitForSync:
    """Waits until the agent has received all earlier writes to the store, by means of a later VirtualMachine."""
    numbers = itertools.count()

    async def wait_for_sync() -> None:
        marker = make_virtual_machine(f"marker-{next(numbers)}")
        await store.put_virtual_machine(marker)
        async with served.unix.get(f"/vm-cfg/{marker.name}", params={"wait": "5"}) as answer:
            assert answer.status == 200

    return wait_for_sync


@pytest.fixture
async def virtual_machine(store: SqliteStore, wait_for_sync: WaitForSync) -> VirtualMachine:
    """The pod of Contrail's sample with two interfaces, none of them plugged."""
    virtual_machine = make_virtual_machine(uid=SAMPLE_VM, interfaces=(sample_interface(), left_interface(SAMPLE_VM, 1)))
    await store.put_virtual_machine(virtual_machine)
    await wait_for_sync()
    return virtual_machine
