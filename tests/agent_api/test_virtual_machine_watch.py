"""Watch of the store: during an interruption the agent serves what it knows, and then applies the whole new list."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agent_api import virtual_machine_watch
from agent_api.virtual_machine_index import VirtualMachineIndex
from agent_api.virtual_machine_watch import VirtualMachineWatch
from contrail_config.embedded.store import SqliteStore
from contrail_config.errors import StoreUnavailableError
from contrail_config.objects import VirtualMachine
from contrail_config.store import Change, ChangeType
from tests.support.served_agent import DEADLINE, serve_agent, until
from tests.support.virtual_machines import NODE, make_virtual_machine

MachineChange = Change[VirtualMachine]

SYNCED: MachineChange = Change(type=ChangeType.SYNCED, object=None)


def added(*virtual_machines: VirtualMachine) -> list[MachineChange]:
    return [Change(type=ChangeType.ADDED, object=virtual_machine) for virtual_machine in virtual_machines]


class ScriptedStore:
    """Delivers each watch its changes and then its error, if any; the last watch stays open."""

    def __init__(self, *watches: tuple[Sequence[MachineChange], Exception | None]) -> None:
        self._watches = list(watches)
        self.last_is_open = asyncio.Event()

    @contextlib.asynccontextmanager
    async def watch_virtual_machines(
        self, *, node: str | None = None, include_pending: bool = False
    ) -> AsyncIterator[AsyncIterator[MachineChange]]:
        assert (node, include_pending) == (NODE, True)
        changes, error = self._watches.pop(0)
        yield self._play(changes, error)

    async def _play(self, changes: Sequence[MachineChange], error: Exception | None) -> AsyncIterator[MachineChange]:
        for change in changes:
            yield change
        if error is not None:
            raise error
        if not self._watches:
            self.last_is_open.set()
            await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def watched(store: ScriptedStore) -> AsyncIterator[tuple[VirtualMachineIndex, VirtualMachineWatch]]:
    """Watches the store up to its last scripted watch."""
    virtual_machines = VirtualMachineIndex()
    watch = VirtualMachineWatch(store, node=NODE, index=virtual_machines, initial_backoff=0.001)
    task = asyncio.create_task(watch.run())
    try:
        async with asyncio.timeout(DEADLINE):
            waiting = asyncio.create_task(store.last_is_open.wait())
            await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        yield virtual_machines, watch
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def is_served(virtual_machines: VirtualMachineIndex, *those: VirtualMachine) -> list[bool]:
    return [virtual_machines.find(virtual_machine.name) is not None for virtual_machine in those]


async def test_what_disappeared_during_an_interruption_is_removed_after_the_new_list() -> None:
    gone, stayed, new = make_virtual_machine("gone"), make_virtual_machine("stayed"), make_virtual_machine("new")
    error = StoreUnavailableError("the disk is on fire")
    store = ScriptedStore(([*added(gone, stayed), SYNCED], error), ([*added(stayed, new), SYNCED], None))
    async with watched(store) as (virtual_machines, watch):
        assert is_served(virtual_machines, gone, stayed, new) == [False, True, True]
        assert watch.problem is None


async def test_known_virtual_machines_stay_served_during_the_new_list() -> None:
    known, new = make_virtual_machine("known"), make_virtual_machine("new")
    error = StoreUnavailableError("the disk is on fire")
    store = ScriptedStore(([*added(known), SYNCED], error), (added(new), None))
    async with watched(store) as (virtual_machines, watch):
        assert is_served(virtual_machines, known, new) == [True, True]
        assert watch.problem == "store: watch failed: the disk is on fire"


async def test_a_failed_watch_is_retried() -> None:
    virtual_machine = make_virtual_machine()
    error = StoreUnavailableError("locked")
    store = ScriptedStore(([], error), ([], error), ([], error), ([*added(virtual_machine), SYNCED], None))
    async with watched(store) as (virtual_machines, watch):
        assert is_served(virtual_machines, virtual_machine) == [True]
        assert watch.problem is None


async def test_a_watch_closed_by_the_store_is_restarted() -> None:
    virtual_machine = make_virtual_machine()
    store = ScriptedStore(([SYNCED], None), ([*added(virtual_machine), SYNCED], None))
    async with watched(store) as (virtual_machines, _):
        assert is_served(virtual_machines, virtual_machine) == [True]


async def test_an_error_that_is_not_a_store_error_is_fatal() -> None:
    store = ScriptedStore(([], ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError):
        await VirtualMachineWatch(store, node=NODE, index=VirtualMachineIndex()).run()


async def test_a_waiting_request_is_answered_when_the_store_is_back(tmp_path: Path) -> None:
    virtual_machine = make_virtual_machine()
    store = ScriptedStore(([], StoreUnavailableError("locked")), ([*added(virtual_machine), SYNCED], None))
    async with (
        serve_agent(store, tmp_path, initial_backoff=0.001) as served,
        served.unix.get(f"/vm-cfg/{virtual_machine.name}?wait=5") as answer,
    ):
        assert answer.status == 200


async def test_a_closed_store_is_a_readiness_reason(store: SqliteStore, tmp_path: Path) -> None:
    async with serve_agent(store, tmp_path, initial_backoff=0.001) as served:
        virtual_machine = make_virtual_machine()
        await store.put_virtual_machine(virtual_machine)
        await served.unix.get(f"/vm-cfg/{virtual_machine.name}?wait=5")
        assert served.agent.readiness() == []
        await store.close()
        await until(served.agent.readiness)
        async with served.unix.get(f"/vm-cfg/{virtual_machine.name}") as answer:
            assert answer.status == 200  # known VirtualMachines stay served


async def test_backoff_doubles_up_to_a_cap_with_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    pauses: list[float] = []

    async def record(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) % len(bounds) == 0:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", record)
    for _ in range(10):
        store = ScriptedStore(*[([], StoreUnavailableError("locked"))] * len(bounds))
        with pytest.raises(asyncio.CancelledError):
            await VirtualMachineWatch(store, node=NODE, index=VirtualMachineIndex()).run()
    assert all(bound / 2 <= pause <= bound for bound, pause in zip(bounds * 10, pauses, strict=True))
    assert len(set(pauses[:: len(bounds)])) > 1
    assert virtual_machine_watch.MAX_BACKOFF == 10.0
