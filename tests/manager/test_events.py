"""Event recorder: in the background, bounded, best effort."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry, Counter

from contrail_config.errors import StoreUnavailableError
from contrail_config.objects import Event, EventType
from contrail_config.store import EventPage
from manager import events
from manager.events import EventRecorder, Subject, about_nad, about_pod
from tests.support.pods import make_nad, make_pod
from tests.support.running_manager import DEADLINE

POD = about_pod(make_pod())


class Log:
    """An event log that a test blocks, or lets fail."""

    def __init__(self) -> None:
        self.recorded: list[Event] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.errors: list[Exception] = []

    async def record_event(self, event: Event) -> Event:
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop()
        self.recorded.append(event)
        return event

    async def events(self, **_selection: str | None) -> list[Event]:
        return self.recorded

    async def event_page(self, *, namespace: str | None, limit: int, token: str | None) -> EventPage:
        return EventPage(self.recorded[:limit], None)


class Recording:
    """A recorder on such a log, with its counter."""

    def __init__(self) -> None:
        self.log = Log()
        self.registry = CollectorRegistry()
        counter = Counter("recorded", "Events", ["reason"], registry=self.registry)
        self.stored: list[Event] = []
        self.recorder = EventRecorder(self.log, recorded=counter, on_recorded=self.stored.append, clock=lambda: 17.5)

    async def record(self, message: str, *, subject: Subject = POD) -> None:
        await self.recorder.record(subject, EventType.WARNING, "Reason", message)

    async def flush(self) -> None:
        async with asyncio.timeout(DEADLINE):
            await self.recorder.flush()

    def count(self) -> float | None:
        return self.registry.get_sample_value("recorded_total", {"reason": "Reason"})


async def test_an_event_has_its_subject_and_time() -> None:
    recording = Recording()
    await recording.record("something", subject=about_nad(make_nad()))
    await recording.flush()
    assert recording.log.recorded == [
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
    assert recording.count() == 1


async def test_all_events_are_written_in_order() -> None:
    recording = Recording()
    messages = [f"message {number}" for number in range(500)]
    for message in messages:
        await recording.record(message)
    await recording.flush()
    assert [event.message for event in recording.log.recorded] == messages
    await recording.flush()


async def test_a_slow_log_blocks_only_when_the_backlog_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_MAX_BACKLOG", 10)
    recording = Recording()
    recording.log.gate.clear()
    await recording.record("being written")
    await asyncio.sleep(0)
    for number in range(10):
        await recording.record(f"message {number}")
    held_up = asyncio.create_task(recording.record("one too many"))
    await asyncio.sleep(0)
    assert not held_up.done()
    recording.log.gate.set()
    async with asyncio.timeout(DEADLINE):
        await held_up
    await recording.flush()
    assert len(recording.log.recorded) == 12


async def test_a_log_that_does_not_answer_delays_nobody_twice(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(events, "_MAX_BACKLOG", 10)
    monkeypatch.setattr(events, "_PATIENCE", 0.05)
    recording = Recording()
    recording.log.gate.clear()
    await recording.record("being written")
    await asyncio.sleep(0)
    for number in range(10):
        await recording.record(f"message {number}")
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*(recording.record("dropped after a while") for _ in range(5)))
    dropped = recording.record("dropped at once")
    with pytest.raises(StopIteration):
        dropped.send(None)
    recording.log.gate.set()
    await recording.flush()
    await recording.record("kept")
    await recording.flush()
    messages = ["being written", *(f"message {number}" for number in range(10)), "kept"]
    assert [event.message for event in recording.log.recorded] == messages
    assert [record.getMessage() for record in caplog.records] == [
        "events are written too slowly: dropping new ones",
        "6 events dropped: others were written too slowly",
    ]


async def test_an_event_that_cannot_be_recorded_is_logged_and_dropped(caplog: pytest.LogCaptureFixture) -> None:
    recording = Recording()
    recording.log.errors = [StoreUnavailableError("the store is closed")]
    await recording.record("lost")
    await recording.flush()
    await recording.record("kept")
    await recording.flush()
    assert [event.message for event in recording.log.recorded] == ["kept"]
    assert recording.count() == 1
    (record,) = caplog.records
    assert record.getMessage() == "1 events dropped: the store is closed"
    assert not record.exc_info


async def test_a_bug_in_the_event_log_is_logged_with_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    recording = Recording()
    recording.log.errors = [KeyError("oops")]
    await recording.record("lost")
    await recording.flush()
    assert caplog.records[0].exc_info


async def test_a_long_message_is_cut() -> None:
    recording = Recording()
    await recording.record("x" * 100_000)
    await recording.flush()
    assert len(recording.log.recorded[0].message) == 1024
    assert recording.log.recorded[0].message.endswith("x…")
