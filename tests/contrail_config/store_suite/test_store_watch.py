"""Watches: every change once and in order, after a list or from now on."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from contrail_config.objects import VirtualMachine
from contrail_config.store import Change, ChangeType, Store, WatchStart
from tests.support.stores import OpenStore
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import make_network

VirtualMachines = AsyncIterator[Change[VirtualMachine]]
SYNCED: Change[VirtualMachine] = Change(ChangeType.SYNCED, None)


async def listed(changes: VirtualMachines) -> list[VirtualMachine | None]:
    """The objects up to SYNCED."""
    objects: list[VirtualMachine | None] = []
    async for change in changes:
        if change.type is ChangeType.SYNCED:
            return objects
        assert change.type is ChangeType.ADDED
        objects.append(change.object)
    raise AssertionError("the watch ended before SYNCED")


async def delivered(changes: VirtualMachines, count: int) -> list[tuple[str, str]]:
    """The next changes, as pairs of type and pod."""
    seen = [await anext(changes) for _ in range(count)]
    return [(change.type.value, change.object.pod) for change in seen if change.object is not None]


async def test_an_empty_list_is_synced_at_once(store: Store) -> None:
    async with store.watch_virtual_machines() as changes:
        assert await anext(changes) == SYNCED


async def test_a_watcher_starts_with_a_list(store: Store) -> None:
    virtual_machines = [make_virtual_machine(f"p{n}") for n in range(3)]
    for virtual_machine in virtual_machines:
        await store.put_virtual_machine(virtual_machine)
    async with store.watch_virtual_machines() as changes:
        assert sorted(await listed(changes), key=str) == sorted(virtual_machines, key=str)
        await store.delete_virtual_machine(virtual_machines[0].uuid)
        assert await anext(changes) == Change(ChangeType.DELETED, virtual_machines[0])


async def test_a_watcher_that_starts_now_sees_only_changes(store: Store) -> None:
    old = make_virtual_machine("old")
    await store.put_virtual_machine(old)
    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        new = make_virtual_machine("new")
        moved = msgspec.structs.replace(old, node="worker-2")
        await store.put_virtual_machine(new)
        await store.put_virtual_machine(moved)
        await store.delete_virtual_machine(old.uuid)
        assert [await anext(changes) for _ in range(3)] == [
            Change(ChangeType.ADDED, new),
            Change(ChangeType.MODIFIED, moved),
            Change(ChangeType.DELETED, moved),
        ]


async def test_writing_an_equal_object_is_no_change(store: Store) -> None:
    virtual_machine, network = make_virtual_machine("p1"), make_network()
    async with (
        store.watch_virtual_machines(start=WatchStart.NOW) as virtual_machines,
        store.watch_networks(start=WatchStart.NOW) as networks,
    ):
        for _ in range(2):
            await store.put_virtual_machine(virtual_machine)
            stored = await store.put_network(network)
            await store.put_network(stored)
        await store.delete_virtual_machine(virtual_machine.uuid)
        await store.delete_virtual_machine(virtual_machine.uuid)
        await store.delete_network(network.uuid)
        await store.put_virtual_machine(make_virtual_machine("p2"))
        assert await delivered(virtual_machines, 3) == [("ADDED", "p1"), ("DELETED", "p1"), ("ADDED", "p2")]
        assert [await anext(networks), await anext(networks)] == [
            Change(ChangeType.ADDED, stored),
            Change(ChangeType.DELETED, stored),
        ]


async def test_a_rejected_write_is_no_change(store: Store) -> None:
    await store.put_virtual_machine(make_virtual_machine("p1"))
    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        caught = await asyncio.gather(store.put_virtual_machine(make_virtual_machine("p1")), return_exceptions=True)
        assert isinstance(caught[0], Exception)
        await store.put_virtual_machine(make_virtual_machine("p2"))
        assert await delivered(changes, 1) == [("ADDED", "p2")]


async def test_a_watcher_of_one_node_sees_only_its_virtual_machines(store: Store) -> None:
    for pod, node in [("a", "n1"), ("b", "n2"), ("c", "n1")]:
        await store.put_virtual_machine(make_virtual_machine(pod, node=node))
    async with store.watch_virtual_machines(node="n1") as changes:
        assert sorted(virtual_machine.pod for virtual_machine in await listed(changes) if virtual_machine) == ["a", "c"]
        await store.put_virtual_machine(make_virtual_machine("d", node="n2"))
        await store.put_virtual_machine(make_virtual_machine("e", node="n1"))
        assert await delivered(changes, 1) == [("ADDED", "e")]


async def test_a_virtual_machine_that_changes_its_node_is_deleted_there_and_added_here(store: Store) -> None:
    virtual_machine = make_virtual_machine("p1", node="n1")
    await store.put_virtual_machine(virtual_machine)
    moved = msgspec.structs.replace(virtual_machine, node="n2")
    async with (
        store.watch_virtual_machines(start=WatchStart.NOW, node="n1") as there,
        store.watch_virtual_machines(start=WatchStart.NOW, node="n2") as here,
    ):
        await store.put_virtual_machine(moved)
        await store.delete_virtual_machine(virtual_machine.uuid)
        assert await anext(there) == Change(ChangeType.DELETED, virtual_machine)
        assert [await anext(here), await anext(here)] == [
            Change(ChangeType.ADDED, moved),
            Change(ChangeType.DELETED, moved),
        ]


async def test_a_write_acknowledged_before_another_one_started_is_delivered_first(store: Store) -> None:
    """An engine that is shared with other processes guarantees no order of concurrent writes."""
    acknowledged: list[str] = []
    before: dict[str, list[str]] = {}

    async def put_some(some: int) -> None:
        for n in range(5):
            pod = f"p{some}-{n}"
            before[pod] = list(acknowledged)
            await store.put_virtual_machine(make_virtual_machine(pod))
            acknowledged.append(pod)

    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        await asyncio.gather(*(put_some(n) for n in range(20)))
        pods = [pod for _, pod in await delivered(changes, 100)]
    for position, pod in enumerate(pods):
        assert set(before[pod]) <= set(pods[:position])


async def test_changes_during_the_list_are_neither_missed_nor_duplicated(store: Store) -> None:
    """The list is longer than a page; objects are added, changed and deleted before and after its current position."""
    virtual_machines = {
        virtual_machine.uuid: virtual_machine
        for virtual_machine in (make_virtual_machine(f"p{n}") for n in range(1200))
    }
    await asyncio.gather(*(store.put_virtual_machine(virtual_machine) for virtual_machine in virtual_machines.values()))
    seen: dict[str, VirtualMachine] = {}
    async with store.watch_virtual_machines() as changes:
        position, synced = 0, False
        async for change in changes:
            if change.type is ChangeType.SYNCED:
                synced = True
            elif change.object is not None:
                assert (change.object.uuid in seen) == (change.type is not ChangeType.ADDED), change
                seen[change.object.uuid] = change.object
                if change.type is ChangeType.DELETED:
                    del seen[change.object.uuid]
            if position % 100 == 0 and position < 2000:
                await churn(store, virtual_machines, round_=position // 100)
            position += 1
            if synced and seen == virtual_machines:
                break
    assert seen == virtual_machines


async def churn(store: Store, virtual_machines: dict[str, VirtualMachine], *, round_: int) -> None:
    """Adds ten virtual machines, changes ten and deletes ten, at evenly spread uuids."""
    some = sorted(virtual_machines)[round_ :: len(virtual_machines) // 20]
    for uuid in some[:10]:
        virtual_machines[uuid] = msgspec.structs.replace(virtual_machines[uuid], config_hash=f"round {round_}")
        await store.put_virtual_machine(virtual_machines[uuid])
    for uuid in some[10:20]:
        del virtual_machines[uuid]
        await store.delete_virtual_machine(uuid)
    for n in range(10):
        virtual_machine = make_virtual_machine(f"new-{round_}-{n}")
        virtual_machines[virtual_machine.uuid] = virtual_machine
        await store.put_virtual_machine(virtual_machine)


async def test_a_slow_watcher_delays_nobody(store: Store) -> None:
    async with store.watch_virtual_machines() as slow, store.watch_virtual_machines() as quick:
        await listed(slow)
        await listed(quick)
        for n in range(300):
            await store.put_virtual_machine(make_virtual_machine(f"p{n}"))
            assert await delivered(quick, 1) == [("ADDED", f"p{n}")]
        assert await delivered(slow, 300) == [("ADDED", f"p{n}") for n in range(300)]


async def test_a_cancelled_watcher_loses_no_change(store: Store) -> None:
    await store.put_virtual_machine(make_virtual_machine("old"))
    async with store.watch_virtual_machines() as changes:
        for _ in range(50):
            waiting = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            if not waiting.cancelled():
                assert waiting.result().object is not None
                break
        else:
            assert await delivered(changes, 1) == [("ADDED", "old")]
        assert await anext(changes) == SYNCED
        await store.put_virtual_machine(make_virtual_machine("new"))
        assert await delivered(changes, 1) == [("ADDED", "new")]


async def test_leaving_the_context_ends_the_watch(store: Store) -> None:
    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        await store.put_virtual_machine(make_virtual_machine("p1"))
    assert [change async for change in changes] == []


async def test_leaving_the_context_wakes_a_waiting_reader(store: Store) -> None:
    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        waiting = asyncio.ensure_future(anext(changes, None))
        await asyncio.sleep(0)
    assert await waiting is None


async def test_closing_the_store_ends_watches_after_the_committed_changes(store: Store) -> None:
    async with store.watch_virtual_machines() as changes, store.watch_networks() as networks:
        await listed(changes)
        waiting = asyncio.ensure_future(anext(networks))
        await store.put_virtual_machine(make_virtual_machine("p1"))
        await store.close()
        assert [change.type async for change in changes] == [ChangeType.ADDED]
        assert (await waiting).type is ChangeType.SYNCED
        assert [change async for change in networks] == []


@pytest.mark.parametrize("start", WatchStart)
async def test_a_watch_after_a_restart_starts_as_requested(
    store: Store, open_store: OpenStore, start: WatchStart
) -> None:
    virtual_machine = make_virtual_machine("p1")
    await store.put_virtual_machine(virtual_machine)
    await store.close()
    reopened = await open_store()
    async with reopened.watch_virtual_machines(start=start) as changes:
        await reopened.put_virtual_machine(make_virtual_machine("p2"))
        expected = ["p2"] if start is WatchStart.NOW else sorted(["p1", "p2"])
        seen = [change async for change in taking(changes, len(expected) + (start is WatchStart.LIST))]
        assert sorted(change.object.pod for change in seen if change.object) == expected


async def taking(changes: VirtualMachines, count: int) -> VirtualMachines:
    for _ in range(count):
        yield await anext(changes)
