"""Pending virtual machines: visible only on request, replaced by complete ones, never the other way round."""

import asyncio

import msgspec
import pytest

from contrail_config.errors import NotFoundError
from contrail_config.objects import Pending, VirtualMachine
from contrail_config.store import Change, ChangeType, Store, WatchStart
from tests.support.stores import OpenStore
from tests.support.virtual_machines import make_pending, make_virtual_machine

SYNCED: Change[VirtualMachine] = Change(ChangeType.SYNCED, None)


def completed(pending: VirtualMachine) -> VirtualMachine:
    """The virtual machine with interfaces that the same pod gets later."""
    return make_virtual_machine(pending.pod, uid=pending.uuid)


async def test_a_pending_virtual_machine_is_listed_only_on_request(store: Store, open_store: OpenStore) -> None:
    pending, complete = make_pending("waits"), make_virtual_machine("runs")
    await store.put_pending(pending)
    await store.put_virtual_machine(complete)
    await store.close()
    store = await open_store()
    assert await store.virtual_machines() == [complete]
    assert await store.virtual_machines(node=pending.node) == [complete]
    assert list(await store.recover_virtual_machines()) == [complete, pending]
    with pytest.raises(NotFoundError, match=pending.uuid):
        await store.virtual_machine(pending.uuid)


async def test_a_reason_replaces_the_earlier_one(store: Store) -> None:
    pending = make_pending()
    later = msgspec.structs.replace(pending, pending=Pending("AddressesExhausted", "no free IPv4 address"))
    for each in (pending, later):
        await store.put_pending(each)
    assert list(await store.recover_virtual_machines()) == [later]


async def test_a_complete_virtual_machine_replaces_the_pending_one(store: Store) -> None:
    pending = make_pending()
    await store.put_pending(pending)
    await store.put_virtual_machine(completed(pending))
    assert await store.virtual_machine(pending.uuid) == completed(pending)
    assert list(await store.recover_virtual_machines()) == [completed(pending)]


async def test_a_complete_virtual_machine_is_never_replaced_by_a_pending_one(store: Store) -> None:
    pending = make_pending()
    complete = completed(pending)
    await store.put_virtual_machine(complete)
    await store.put_pending(pending)
    await store.delete_pending(pending)
    assert list(await store.recover_virtual_machines()) == [complete]


async def test_writes_of_both_kinds_at_once_end_with_the_complete_one(store: Store) -> None:
    for number in range(10):
        pending = make_pending(f"p{number}")
        writes = [store.put_pending(pending), store.put_virtual_machine(completed(pending))]
        await asyncio.gather(*(writes if number % 2 else reversed(writes)))
        assert await store.virtual_machine(pending.uuid) == completed(pending)


async def test_a_pending_predecessor_does_not_prevent_the_write_of_a_recreated_pod(store: Store) -> None:
    old, new = make_pending("web"), make_virtual_machine("web")
    await store.put_pending(old)
    await store.put_virtual_machine(new)
    await store.delete_pending(old)
    assert list(await store.recover_virtual_machines()) == [new]


async def test_deleting_a_pending_virtual_machine_is_idempotent(store: Store) -> None:
    pending = make_pending()
    await store.put_pending(pending)
    for _ in range(2):
        await store.delete_pending(pending)
    assert list(await store.recover_virtual_machines()) == []


async def test_a_watch_sees_pending_virtual_machines_only_on_request(store: Store) -> None:
    pending, other = make_pending("waits"), make_virtual_machine("runs")
    await store.put_pending(pending)
    async with (
        store.watch_virtual_machines() as complete_only,
        store.watch_virtual_machines(include_pending=True, node=pending.node) as both,
    ):
        assert [await anext(both), await anext(both)] == [Change(ChangeType.ADDED, pending), SYNCED]
        assert await anext(complete_only) == SYNCED
        await store.put_virtual_machine(completed(pending))
        await store.put_virtual_machine(other)
        assert [await anext(both), await anext(both)] == [
            Change(ChangeType.MODIFIED, completed(pending)),
            Change(ChangeType.ADDED, other),
        ]
        assert [await anext(complete_only), await anext(complete_only)] == [
            Change(ChangeType.ADDED, completed(pending)),
            Change(ChangeType.ADDED, other),
        ]


async def test_a_watch_sees_the_deletion_of_a_pending_virtual_machine_only_on_request(store: Store) -> None:
    pending, mark = make_pending("waits"), make_virtual_machine("mark")
    await store.put_pending(pending)
    async with (
        store.watch_virtual_machines(start=WatchStart.NOW) as complete_only,
        store.watch_virtual_machines(start=WatchStart.NOW, include_pending=True) as both,
    ):
        await store.delete_pending(pending)
        await store.put_virtual_machine(mark)
        assert await anext(both) == Change(ChangeType.DELETED, pending)
        assert await anext(complete_only) == Change(ChangeType.ADDED, mark)
