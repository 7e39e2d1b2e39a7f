"""Telling owners is done in the background, bounded, and is never a reason to fail."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry, Counter

from contrail_config.errors import StoreUnavailableError
from contrail_config.objects import Event, EventType
from manager import events
from manager.events import EventRecorder, Subject, about_nad, about_pod
from tests.support.pods import make_nad, make_pod
from tests.support.running_manager import DEADLINE

POD = about_pod(make_pod())


class Log:
    """A log of events that a test holds up, or lets fail."""

    def __init__(self) -> None:
        self.recorded: list[Event] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.errors: list[Exception] = []

    async def record_event(self, event: Event) -> None:
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop()
        self.recorded.append(event)

    async def events(self, **_selection: str | None) -> list[Event]:
        return self.recorded


class Told:
    """A recorder on such a log."""

    def __init__(self) -> None:
        self.log = Log()
        self.registry = CollectorRegistry()
        counter = Counter("told", "Events", ["reason"], registry=self.registry)
        self.recorder = EventRecorder(self.log, recorded=counter, clock=lambda: 17.5)

    async def record(self, message: str, *, subject: Subject = POD) -> None:
        await self.recorder.record(subject, EventType.WARNING, "Reason", message)

    async def flushed(self) -> None:
        async with asyncio.timeout(DEADLINE):
            await self.recorder.flush()

    def count(self) -> float | None:
        return self.registry.get_sample_value("told_total", {"reason": "Reason"})


async def test_an_event_says_what_it_is_about_and_when() -> None:
    told = Told()
    await told.record("something", subject=about_nad(make_nad()))
    await told.flushed()
    assert told.log.recorded == [
        Event(
            kind="NetworkAttachmentDefinition",
            namespace="blue",
            name="net-a",
            uid=make_nad().uid,
            type=EventType.WARNING,
            reason="Reason",
            message="something",
            count=1,
            first_seen=17.5,
            last_seen=17.5,
        )
    ]
    assert told.count() == 1


async def test_they_are_written_in_order_and_all_of_them() -> None:
    told = Told()
    messages = [f"message {number}" for number in range(500)]
    for message in messages:
        await told.record(message)
    await told.flushed()
    assert [event.message for event in told.log.recorded] == messages
    await told.flushed()


async def test_a_slow_log_holds_up_nobody_until_it_is_far_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_MAX_BACKLOG", 10)
    told = Told()
    told.log.gate.clear()
    await told.record("being written")
    await asyncio.sleep(0)
    for number in range(9):
        await told.record(f"message {number}")
    held_up = asyncio.create_task(told.record("one too many"))
    await asyncio.sleep(0)
    assert not held_up.done()
    told.log.gate.set()
    async with asyncio.timeout(DEADLINE):
        await held_up
    await told.flushed()
    assert len(told.log.recorded) == 11


async def test_what_cannot_be_recorded_is_logged_and_dropped(caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    told.log.errors = [StoreUnavailableError("the store is closed")]
    await told.record("lost")
    await told.flushed()
    await told.record("kept")
    await told.flushed()
    assert [event.message for event in told.log.recorded] == ["kept"]
    assert told.count() == 1
    (record,) = caplog.records
    assert record.getMessage() == "1 events dropped: the store is closed"
    assert not record.exc_info


async def test_a_bug_in_the_log_is_logged_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    told.log.errors = [KeyError("oops")]
    await told.record("lost")
    await told.flushed()
    assert caplog.records[0].exc_info


async def test_a_message_of_any_length_is_cut() -> None:
    told = Told()
    await told.record("x" * 100_000)
    await told.flushed()
    assert len(told.log.recorded[0].message) == 1024
    assert told.log.recorded[0].message.endswith("x…")
