"""A store that cannot be watched for a while: the agent serves what it knows, says so, and takes the new list whole."""

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
from tests.support.agent import DEADLINE, serve_agent, until
from tests.support.machines import NODE, make_machine

MachineChange = Change[VirtualMachine]

SYNCED: MachineChange = Change(type=ChangeType.SYNCED, object=None)


def added(*machines: VirtualMachine) -> list[MachineChange]:
    return [Change(type=ChangeType.ADDED, object=machine) for machine in machines]


class ScriptedStore:
    """Gives each watch its changes and then its error, if it has one; the last watch stays open."""

    def __init__(self, *watches: tuple[Sequence[MachineChange], Exception | None]) -> None:
        self._watches = list(watches)
        self.last_is_open = asyncio.Event()

    @contextlib.asynccontextmanager
    async def watch_virtual_machines(self, *, node: str | None = None) -> AsyncIterator[AsyncIterator[MachineChange]]:
        assert node == NODE
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
async def followed(store: ScriptedStore) -> AsyncIterator[tuple[VirtualMachineIndex, VirtualMachineWatch]]:
    """Follows the store up to its last watch."""
    machines = VirtualMachineIndex()
    watch = VirtualMachineWatch(store, node=NODE, index=machines, first_pause=0.001)
    task = asyncio.create_task(watch.run())
    try:
        async with asyncio.timeout(DEADLINE):
            waiting = asyncio.create_task(store.last_is_open.wait())
            await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        yield machines, watch
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def answering(machines: VirtualMachineIndex, *those: VirtualMachine) -> list[bool]:
    return [machines.find(machine.name) is not None for machine in those]


async def test_what_disappeared_meanwhile_is_dropped_after_the_new_list() -> None:
    gone, stayed, new = make_machine("gone"), make_machine("stayed"), make_machine("new")
    error = StoreUnavailableError("the disk is on fire")
    store = ScriptedStore(([*added(gone, stayed), SYNCED], error), ([*added(stayed, new), SYNCED], None))
    async with followed(store) as (machines, watch):
        assert answering(machines, gone, stayed, new) == [False, True, True]
        assert watch.problem is None


async def test_what_is_known_stays_served_while_the_new_list_is_not_whole() -> None:
    known, new = make_machine("known"), make_machine("new")
    error = StoreUnavailableError("the disk is on fire")
    store = ScriptedStore(([*added(known), SYNCED], error), (added(new), None))
    async with followed(store) as (machines, watch):
        assert answering(machines, known, new) == [True, True]
        assert watch.problem == "store: watch failed: the disk is on fire"


async def test_it_is_tried_again_as_often_as_it_fails() -> None:
    machine = make_machine()
    error = StoreUnavailableError("locked")
    store = ScriptedStore(([], error), ([], error), ([], error), ([*added(machine), SYNCED], None))
    async with followed(store) as (machines, watch):
        assert answering(machines, machine) == [True]
        assert watch.problem is None


async def test_a_watch_that_the_store_ends_is_begun_anew_too() -> None:
    machine = make_machine()
    store = ScriptedStore(([SYNCED], None), ([*added(machine), SYNCED], None))
    async with followed(store) as (machines, _):
        assert answering(machines, machine) == [True]


async def test_an_error_that_is_none_of_the_stores_ends_the_agent() -> None:
    store = ScriptedStore(([], ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError):
        await VirtualMachineWatch(store, node=NODE, index=VirtualMachineIndex()).run()


async def test_a_pod_that_waits_is_served_when_the_store_is_back(tmp_path: Path) -> None:
    machine = make_machine()
    store = ScriptedStore(([], StoreUnavailableError("locked")), ([*added(machine), SYNCED], None))
    async with (
        serve_agent(store, tmp_path, first_pause=0.001) as served,
        served.unix.get(f"/vm-cfg/{machine.name}?wait=5") as answer,
    ):
        assert answer.status == 200


async def test_a_closed_store_is_said_in_readiness(store: SqliteStore, tmp_path: Path) -> None:
    async with serve_agent(store, tmp_path, first_pause=0.001) as served:
        machine = make_machine()
        await store.put_virtual_machine(machine)
        await served.unix.get(f"/vm-cfg/{machine.name}?wait=5")
        assert served.agent.readiness() == []
        await store.close()
        await until(served.agent.readiness)
        async with served.unix.get(f"/vm-cfg/{machine.name}") as answer:
            assert answer.status == 200  # what is known stays served


async def test_pauses_double_up_to_a_cap_and_are_jittered(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert virtual_machine_watch.LONGEST_PAUSE == 10.0
