"""Cache of VncStore: what events, lists and own writes do to it."""

import asyncio

import pytest

from contrail_config.objects import VirtualMachine
from contrail_config.store import Change, ChangeType, WatchStart
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.mapping import annotations, machines
from contrail_config.vnc.own_writes import OwnWrites
from tests.support.virtual_machines import make_virtual_machine


def stored(machine: VirtualMachine) -> dict[str, object]:
    body = machines.machine_body(machine)
    pairs = annotations.from_object(body) | {annotations.MACHINE: machines.machine_annotation(machine)}
    return {**body, "annotations": annotations.to_map(pairs)}


def test_an_event_that_an_own_write_replaced_is_outdated() -> None:
    writes: OwnWrites[str] = OwnWrites()
    writes.wrote("u", None, "first")
    writes.wrote("u", "first", "second")
    assert writes.is_outdated("u", None)
    assert writes.is_outdated("u", "first")
    assert not writes.is_outdated("u", "by somebody else")
    assert not writes.is_outdated("u", "second")
    assert not writes.is_outdated("u", "first"), "the last write was seen: whatever comes is newer"


def test_a_write_whose_event_came_first_leaves_nothing() -> None:
    writes: OwnWrites[str] = OwnWrites()
    writes.wrote("u", "same", "same")
    assert not writes.is_outdated("u", "other")


async def test_an_old_event_does_not_take_back_an_own_write() -> None:
    cache, old = Cache("k8s"), make_virtual_machine(node="n1")
    new = make_virtual_machine(uid=old.uuid, node="n2")
    cache.changed(machines.KIND, stored(old))
    async with cache.machines.watch(start=WatchStart.NOW, sees=lambda _: True) as changes:
        cache.machines.wrote(old.uuid, new)
        cache.changed(machines.KIND, stored(old))
        cache.changed(machines.KIND, stored(new))
        cache.deleted(machines.KIND, old.uuid)
        cache.deleted(machines.KIND, old.uuid)
        async with asyncio.timeout(5):
            assert [await anext(changes), await anext(changes)] == [
                Change(ChangeType.MODIFIED, new),
                Change(ChangeType.DELETED, new),
            ]


def test_a_comparison_keeps_what_changed_since_it_began() -> None:
    cache, listed, created, gone = Cache("k8s"), *(make_virtual_machine(pod) for pod in ("a", "b", "c"))
    cache.changed(machines.KIND, stored(gone))
    cache.comparing()
    cache.changed(machines.KIND, stored(created))
    cache.deleted(machines.KIND, gone.uuid)
    cache.compared(machines.KIND, [stored(listed), stored(gone)])
    assert {machine.pod for machine in cache.machines} == {"a", "b"}


def test_a_list_replaces_what_is_not_in_it() -> None:
    cache, here, gone = Cache("k8s"), make_virtual_machine("a"), make_virtual_machine("b")
    cache.changed(machines.KIND, stored(gone))
    cache.listed(machines.KIND, [stored(here)])
    assert list(cache.machines) == [here]


def test_an_object_that_cannot_be_read_is_skipped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    cache, machine = Cache("k8s"), make_virtual_machine()
    pairs = {annotations.CLUSTER: "k8s", annotations.MACHINE: "nonsense"}
    cache.changed(machines.KIND, {**machines.machine_body(machine), "annotations": annotations.to_map(pairs)})
    assert list(cache.machines) == []
    assert f"virtual-machine {machine.uuid}: annotation machine" in caplog.text
