"""Group commit: many operations in one transaction, each atomic whatever happens to the others."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from contrail_config.embedded.engine import Engine
from contrail_config.embedded.store import SqliteStore
from contrail_config.embedded.worker import Worker
from contrail_config.errors import ConflictError, ExhaustedError, NotFoundError, StoreUnavailableError
from contrail_config.objects import VirtualMachine
from contrail_config.store import ChangeType, WatchStart
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import allocate_one, make_network, new_owner, request, start_pod


@pytest.fixture
async def statements(worker: Worker, engine: Engine) -> list[str]:
    """Statements of the connection, in the order of execution."""
    executed: list[str] = []
    await worker.run(partial(engine.database.connection.set_trace_callback, executed.append), writes=False)
    return executed


RunSql = Callable[[str], Awaitable[None]]


@pytest.fixture
def run_sql(worker: Worker, engine: Engine) -> RunSql:
    """Executes a statement on the connection of the store."""

    async def run(statement: str) -> None:
        await worker.run(lambda: engine.database.connection.execute(statement).fetchall(), writes=False)

    return run


async def test_pending_writes_share_a_commit(store: SqliteStore, statements: list[str]) -> None:
    await asyncio.gather(*(store.put_virtual_machine(make_virtual_machine(f"p{n}")) for n in range(200)))
    assert statements.count("COMMIT") <= 3


async def test_a_rejected_operation_does_not_affect_the_others(store: SqliteStore, statements: list[str]) -> None:
    network = await store.put_network(make_network("tiny", "10.1.0.0/30"))
    await store.put_virtual_machine(make_virtual_machine("taken"))
    statements.clear()
    results = await asyncio.gather(
        store.put_virtual_machine(make_virtual_machine("one")),
        store.put_virtual_machine(make_virtual_machine("taken")),
        store.put_virtual_machine(make_virtual_machine("two")),
        store.allocate([request(network), request(network)]),
        store.allocate([request(network)]),
        store.delete_network("no such"),
        store.virtual_machine("no such"),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [
        type(None), ConflictError, type(None), ExhaustedError, list, type(None), NotFoundError
    ]  # fmt: skip
    assert [virtual_machine.pod for virtual_machine in await store.virtual_machines()] == ["one", "taken", "two"]
    assert statements.count("COMMIT") <= 2
    assert statements.count("ROLLBACK") == 0


@pytest.fixture
async def doomed(store: SqliteStore, run_sql: RunSql) -> VirtualMachine:
    """A virtual machine whose deletion fails in its last step, the deletion of its retired network."""
    network = await store.put_network(make_network("retired", retired=True))
    virtual_machine = await start_pod(store, [network], "doomed")
    await run_sql("CREATE TRIGGER no BEFORE DELETE ON networks BEGIN SELECT RAISE(ABORT, 'not today'); END")
    return virtual_machine


async def test_an_operation_that_fails_after_a_write_is_rolled_back_alone(
    store: SqliteStore, doomed: VirtualMachine
) -> None:
    network = await store.put_network(make_network("left"))
    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        results = await asyncio.gather(
            store.put_virtual_machine(make_virtual_machine("before")),
            allocate_one(store, network),
            store.delete_virtual_machine(doomed.uuid),
            allocate_one(store, network),
            store.put_virtual_machine(make_virtual_machine("after")),
            return_exceptions=True,
        )
        assert isinstance(results[2], StoreUnavailableError)
        assert [results[1], results[3]] == ["10.1.0.2", "10.1.0.3"]
        delivered = [await anext(changes), await anext(changes)]
        assert [change.object.pod for change in delivered if change.object] == ["before", "after"]
    assert [virtual_machine.pod for virtual_machine in await store.virtual_machines()] == ["after", "before", "doomed"]


async def test_caches_match_the_rows_after_a_failure(
    store: SqliteStore, doomed: VirtualMachine, run_sql: RunSql
) -> None:
    network = (await store.networks())[0]
    with pytest.raises(StoreUnavailableError, match="not today"):
        await store.delete_virtual_machine(doomed.uuid, hold=0)
    assert await store.address_owners() == {doomed.interfaces[0].uuid}
    assert await allocate_one(store, network) == "10.1.0.3"
    await run_sql("DROP TRIGGER no")
    await store.delete_virtual_machine(doomed.uuid, hold=0)
    assert await store.virtual_machines() == []
    assert await allocate_one(store, network, address="10.1.0.2") == "10.1.0.2"


async def test_an_operation_that_makes_sqlite_roll_back_fails_alone(store: SqliteStore, run_sql: RunSql) -> None:
    await run_sql(
        """CREATE TRIGGER no BEFORE INSERT ON machines WHEN new.name LIKE '%doomed'
        BEGIN SELECT RAISE(ROLLBACK, 'all gone'); END""",
    )
    pods = ["one", "doomed", "two"]
    results = await asyncio.gather(
        *(store.put_virtual_machine(make_virtual_machine(pod)) for pod in pods), return_exceptions=True
    )
    assert [type(result) for result in results] == [type(None), StoreUnavailableError, type(None)]
    assert [virtual_machine.pod for virtual_machine in await store.virtual_machines()] == ["one", "two"]


async def test_a_failed_commit_changes_nothing(store: SqliteStore, worker: Worker, engine: Engine) -> None:
    network = await store.put_network(make_network(dns=("10.1.0.8",)))
    owner = new_owner()

    def deny_commit(action: int, first: str | None, *_: str | None) -> int:
        denied = action == sqlite3.SQLITE_TRANSACTION and first == "COMMIT"
        return sqlite3.SQLITE_DENY if denied else sqlite3.SQLITE_OK

    set_authorizer = engine.database.connection.set_authorizer
    await worker.run(partial(set_authorizer, deny_commit), writes=False)
    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        results = await asyncio.gather(
            store.put_network(make_network(dns=("10.1.0.9",))),
            allocate_one(store, network, owner),
            store.put_virtual_machine(make_virtual_machine("lost")),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [StoreUnavailableError] * 3
        await worker.run(partial(set_authorizer, None), writes=False)
        assert await store.networks() == [network]
        assert await store.address_owners() == set()
        (allocated,) = await store.allocate([request(network, owner)])
        assert (allocated.address, allocated.dns) == ("10.1.0.2", ("10.1.0.8",))
        await store.put_virtual_machine(make_virtual_machine("kept"))
        change = await anext(changes)
        assert change.object is not None
        assert change.object.pod == "kept"


@pytest.mark.parametrize("retired", [True, False])
async def test_a_deleted_network_leaves_nothing_in_memory(
    store: SqliteStore, worker: Worker, engine: Engine, statements: list[str], retired: bool
) -> None:
    network = await store.put_network(make_network(retired=retired))
    owner = new_owner()
    await allocate_one(store, network, owner)
    await store.release([owner])
    if not retired:  # a retired one is deleted with its last address
        await store.delete_network(network.uuid)
    with pytest.raises(NotFoundError):
        await worker.run(partial(engine.networks.get, network.uuid), writes=False)
    statements.clear()
    await worker.run(partial(engine.pools.get, network, family=4), writes=False)
    assert any("FROM addresses WHERE network" in statement for statement in statements)  # the pools are loaded again


@pytest.fixture
async def full_store(store: SqliteStore, run_sql: RunSql) -> SqliteStore:
    """A store whose file cannot grow."""
    await run_sql("PRAGMA max_page_count = 1")  # SQLite raises it to the current size
    return store


async def test_a_full_disk_fails_only_writes_that_need_space(full_store: SqliteStore, run_sql: RunSql) -> None:
    network = await full_store.put_network(make_network())
    owner = new_owner()
    assert await allocate_one(full_store, network, owner) == "10.1.0.2"
    async with full_store.watch_virtual_machines() as changes:
        results = await asyncio.gather(
            *(start_pod(full_store, [network], f"p{n}") for n in range(50)), return_exceptions=True
        )
        failed = [result for result in results if isinstance(result, BaseException)]
        assert failed
        assert all(isinstance(error, StoreUnavailableError) and "full" in str(error) for error in failed)
        virtual_machines = await full_store.virtual_machines()
        seen = [await anext(changes) for _ in range(len(virtual_machines) + 1)]
        assert {change.object.uuid for change in seen if change.object} == {
            virtual_machine.uuid for virtual_machine in virtual_machines
        }
    await run_sql("PRAGMA max_page_count = 1000000")
    await start_pod(full_store, [network], "later")
    virtual_machines = await full_store.virtual_machines()
    allocated = [
        address.address for m in virtual_machines for interface in m.interfaces for address in interface.addresses
    ]
    assert len(allocated) == len(set(allocated))
    assert await allocate_one(full_store, network, owner) == "10.1.0.2"


async def test_a_change_is_delivered_only_after_its_commit(store: SqliteStore) -> None:
    """A reader that receives the change finds the virtual machine in the store."""
    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        for n in range(20):
            virtual_machine = make_virtual_machine(f"p{n}")
            writing = asyncio.ensure_future(store.put_virtual_machine(virtual_machine))
            change = await anext(changes)
            assert change.type is ChangeType.ADDED
            assert await store.virtual_machine(virtual_machine.uuid) == virtual_machine
            await writing


async def test_a_broken_connection_fails_every_call(store: SqliteStore, worker: Worker, engine: Engine) -> None:
    await worker.run(engine.database.connection.close, writes=False)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="closed database"):
            await store.put_virtual_machine(make_virtual_machine())
        with pytest.raises(StoreUnavailableError, match="closed database"):
            await store.virtual_machines()
