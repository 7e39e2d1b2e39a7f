"""Pending reporter: one write per change of the reason, after a delay, at a bounded rate, retried if it fails."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from contrail_config.errors import StoreUnavailableError
from contrail_config.objects import Pending, VirtualMachine
from manager.controller.pending_reporter import DELAY, PendingReporter
from tests.support.fast_event_loop import run_fast
from tests.support.virtual_machines import make_pending

KEY = "default/p1"


class RecordingStore:
    """Keeps the pending virtual machines by uuid, and the time of each write; `failures` are raised first."""

    def __init__(self) -> None:
        self.stored: dict[str, VirtualMachine] = {}
        self.writes: list[tuple[float, str, str]] = []
        self.failures: list[Exception] = []
        self.in_progress = 0
        self.most_in_progress = 0
        self.latency = 0.0

    async def put_pending(self, virtual_machine: VirtualMachine) -> None:
        await self._write("put", virtual_machine.uuid)
        self.stored[virtual_machine.uuid] = virtual_machine

    async def delete_pending(self, virtual_machine: VirtualMachine) -> None:
        await self._write("delete", virtual_machine.uuid)
        self.stored.pop(virtual_machine.uuid, None)

    async def _write(self, kind: str, uuid: str) -> None:
        self.writes.append((asyncio.get_running_loop().time(), kind, uuid))
        self.in_progress += 1
        self.most_in_progress = max(self.most_in_progress, self.in_progress)
        await asyncio.sleep(self.latency)
        self.in_progress -= 1
        if self.failures:
            raise self.failures.pop()

    @property
    def kinds(self) -> list[str]:
        return [kind for _, kind, _ in self.writes]


Check = Callable[[PendingReporter, RecordingStore], Awaitable[None]]


def run(check: Check) -> None:
    """Runs the check with a reporter on a store, on a virtual clock."""

    async def run_check() -> None:
        store = RecordingStore()
        reporter = PendingReporter(store)
        await check(reporter, store)
        await reporter.queue.close()

    run_fast(run_check())


async def settle(reporter: PendingReporter) -> None:
    """Waits until nothing is queued, scheduled or retried."""
    while reporter.queue.scheduled or len(reporter.queue):  # noqa: ASYNC110 - takes no time on a virtual clock
        await asyncio.sleep(0.05)


def other_reason(pending: VirtualMachine) -> VirtualMachine:
    return msgspec.structs.replace(pending, pending=Pending("AddressesExhausted", "no free IPv4 address"))


def test_a_reason_is_written_once_after_a_delay() -> None:
    async def check(reporter: PendingReporter, store: RecordingStore) -> None:
        pending = make_pending()
        for _ in range(3):
            reporter.report(KEY, pending)
            await settle(reporter)
        ((at, kind, uuid),) = store.writes
        assert (kind, uuid) == ("put", pending.uuid)
        assert at == pytest.approx(DELAY)
        assert store.stored == {pending.uuid: pending}

    run(check)


def test_a_pod_that_is_assigned_within_the_delay_costs_no_write() -> None:
    async def check(reporter: PendingReporter, store: RecordingStore) -> None:
        pending = make_pending()
        reporter.report(KEY, pending)
        reporter.withdraw(KEY, assigned=pending.uuid)
        await settle(reporter)
        assert store.writes == []

    run(check)


def test_of_several_reasons_within_the_delay_only_the_last_is_written() -> None:
    async def check(reporter: PendingReporter, store: RecordingStore) -> None:
        pending = make_pending()
        for reason in (pending, other_reason(pending), pending, other_reason(pending)):
            reporter.report(KEY, reason)
        await settle(reporter)
        assert store.stored == {pending.uuid: other_reason(pending)}
        assert store.kinds == ["put"]

    run(check)


def test_the_assignment_needs_no_deletion() -> None:
    async def check(reporter: PendingReporter, store: RecordingStore) -> None:
        pending = make_pending()
        reporter.report(KEY, pending)
        await settle(reporter)
        reporter.withdraw(KEY, assigned=pending.uuid)
        await settle(reporter)
        reporter.withdraw(KEY)  # the pod is deleted
        await settle(reporter)
        assert store.kinds == ["put"]

    run(check)


def test_the_reason_of_a_deleted_pod_is_deleted() -> None:
    async def check(reporter: PendingReporter, store: RecordingStore) -> None:
        reporter.report(KEY, make_pending())
        await settle(reporter)
        reporter.withdraw(KEY)
        await settle(reporter)
        assert (store.stored, store.kinds) == ({}, ["put", "delete"])

    run(check)


def test_a_pod_deleted_during_the_write_leaves_no_reason() -> None:
    async def check(reporter: PendingReporter, store: RecordingStore) -> None:
        store.latency = 1.0
        reporter.report(KEY, make_pending())
        await asyncio.sleep(DELAY + 0.5)
        reporter.withdraw(KEY)
        await settle(reporter)
        assert (store.stored, store.kinds) == ({}, ["put", "delete"])

    run(check)


def test_the_reason_of_a_recreated_pod_replaces_that_of_its_predecessor() -> None:
    async def check(reporter: PendingReporter, store: RecordingStore) -> None:
        old, new = make_pending(), make_pending()
        for pending in (old, new):
            reporter.report(KEY, pending)
            await settle(reporter)
        assert store.stored == {new.uuid: new}
        successor = make_pending()
        reporter.withdraw(KEY, assigned=successor.uuid)
        await settle(reporter)
        assert store.stored == {}

    run(check)


def test_a_failed_write_is_logged_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    async def check(reporter: PendingReporter, store: RecordingStore) -> None:
        store.failures = [StoreUnavailableError("the disk is full")] * 3
        pending = make_pending()
        reporter.report(KEY, pending)
        await settle(reporter)
        assert store.stored == {pending.uuid: pending}
        assert len(store.writes) == 4

    run(check)
    assert f"{KEY}: retry in" in caplog.text
    assert "the disk is full" in caplog.text


def test_what_an_earlier_manager_wrote_is_not_written_again() -> None:
    async def check(reporter: PendingReporter, store: RecordingStore) -> None:
        same, gone, changed = make_pending("same"), make_pending("gone"), make_pending("changed")
        store.stored = {each.uuid: each for each in (same, gone, changed)}
        for each in store.stored.values():
            reporter.load(f"default/{each.pod}", each)
        reporter.report("default/same", same)
        reporter.report("default/changed", other_reason(changed))
        reporter.withdraw("default/gone")
        await settle(reporter)
        assert {(kind, uuid) for _, kind, uuid in store.writes} == {("put", changed.uuid), ("delete", gone.uuid)}
        assert store.stored == {same.uuid: same, changed.uuid: other_reason(changed)}

    run(check)


def test_a_reason_of_another_pod_of_the_name_is_deleted_when_it_is_found() -> None:
    async def check(reporter: PendingReporter, store: RecordingStore) -> None:
        own, other = make_pending(), make_pending()
        reporter.report(KEY, own)
        await settle(reporter)
        store.stored[other.uuid] = other
        reporter.load(KEY, other)
        reporter.report(KEY, own)
        await settle(reporter)
        assert (store.stored, store.kinds) == ({own.uuid: own}, ["put", "delete"])

    run(check)


def test_many_reasons_are_written_four_at_a_time_and_forty_per_second() -> None:
    async def check(reporter: PendingReporter, store: RecordingStore) -> None:
        for number in range(2_000):
            reporter.report(f"default/p{number}", make_pending(f"p{number}"))
        await settle(reporter)
        assert len(store.stored) == 2_000
        assert store.most_in_progress == 4
        busiest = max(sum(1 for at, _, _ in store.writes if second <= at < second + 1) for second in range(1, 50, 5))
        assert busiest <= 44

    run(check)
