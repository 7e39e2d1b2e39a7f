"""Events: repeated ones are counted, at most 50 are kept of each object, and none for more than a day."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from contrail_config.embedded.engine import Engine
from contrail_config.embedded.store import SqliteStore
from contrail_config.embedded.worker import Worker
from contrail_config.errors import StoreError
from contrail_config.objects import Event, EventType
from contrail_config.store import EventLog
from tests.support.fake_clock import FakeClock

HOUR = 3600.0


@pytest.fixture
def event(clock: FakeClock) -> Event:
    return event_at(clock())


def event_at(now: float, **fields: Any) -> Event:
    values: dict[str, Any] = {
        "kind": "Pod",
        "namespace": "default",
        "name": "web",
        "uid": "uid-1",
        "type": EventType.WARNING,
        "reason": "NetworkMissing",
        "message": "network left is not there",
        "count": 1,
        "first_seen": now,
        "last_seen": now,
    }
    return Event(**{**values, **fields})


async def test_an_event_survives_a_restart(store: SqliteStore, path: Path, event: Event) -> None:
    await store.record_event(event)
    await store.close()
    reopened = await SqliteStore.open(path)
    assert await reopened.events() == [event]
    await reopened.close()


async def test_equal_events_are_counted(store: SqliteStore) -> None:
    log: EventLog = store
    assert await log.record_event(event_at(1000.0)) == event_at(1000.0)
    await log.record_event(event_at(1060.0, count=3))
    kept = await log.record_event(event_at(990.0))
    assert kept == event_at(1000.0, count=5, first_seen=990.0, last_seen=1060.0)
    assert await log.events() == [kept]


@pytest.mark.parametrize(
    "difference",
    [
        {"kind": "NetworkAttachmentDefinition"},
        {"namespace": "other"},
        {"name": "db"},
        {"uid": "uid-2"},
        {"type": EventType.NORMAL},
        {"reason": "Other"},
        {"message": "network right is not there"},
    ],
)
async def test_different_events_are_separate(store: SqliteStore, event: Event, difference: dict[str, Any]) -> None:
    await store.record_event(event)
    await store.record_event(event_at(event.last_seen, **difference))
    assert [found.count for found in await store.events()] == [1, 1]


async def test_pages_of_events_are_complete_and_sorted(store: SqliteStore, clock: FakeClock) -> None:
    for number in range(5):
        await store.record_event(event_at(clock() + number // 2, message=str(number)))
    messages: list[str] = []
    token = None
    while True:
        page = await store.event_page(namespace=None, limit=2, token=token)
        messages += [found.message for found in page.events]
        if page.following is None:
            break
        token = page.following
    assert messages == ["0", "1", "2", "3", "4"]
    assert (await store.event_page(namespace="nobody", limit=2, token=None)).events == []
    with pytest.raises(StoreError, match="not a token"):
        await store.event_page(namespace=None, limit=2, token="x")


async def test_events_are_sorted_by_last_seen(store: SqliteStore, clock: FakeClock) -> None:
    for message, offset in [("b", 2.0), ("a", 1.0), ("c", 3.0), ("a", 4.0)]:
        await store.record_event(event_at(clock() + offset, message=message))
    assert [found.message for found in await store.events()] == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({}, ["a", "b", "c", "n"]),
        ({"kind": "Pod"}, ["a", "b", "c"]),
        ({"namespace": "one"}, ["a", "b", "n"]),
        ({"kind": "Pod", "namespace": "one"}, ["a", "b"]),
        ({"kind": "Pod", "namespace": "two", "name": "c"}, ["c"]),
        ({"name": "nobody"}, []),
    ],
)
async def test_events_can_be_filtered_by_object(store: SqliteStore, wanted: dict[str, str], names: list[str]) -> None:
    objects = [
        ("Pod", "one", "a"),
        ("Pod", "one", "b"),
        ("Pod", "two", "c"),
        ("NetworkAttachmentDefinition", "one", "n"),
    ]
    for kind, namespace, name in objects:
        await store.record_event(event_at(5.0, kind=kind, namespace=namespace, name=name))
    assert [found.name for found in await store.events(**wanted)] == names


async def test_the_fifty_newest_events_of_an_object_are_kept(store: SqliteStore, clock: FakeClock) -> None:
    other = event_at(clock(), uid="uid-2")
    await store.record_event(other)
    for number in range(60):
        await store.record_event(event_at(clock() + number, message=f"message {number}"))
    stored = await store.events()
    assert stored[0] == other
    assert [found.message for found in stored[1:]] == [f"message {number}" for number in range(10, 60)]


async def test_a_repeated_event_is_no_longer_the_oldest(store: SqliteStore, clock: FakeClock) -> None:
    for number in [*range(50), 0, 50]:
        clock.advance(1)
        await store.record_event(event_at(clock(), message=f"message {number}"))
    messages = {found.message for found in await store.events()}
    assert "message 0" in messages
    assert "message 1" not in messages


async def test_events_expire_after_a_day(store: SqliteStore, clock: FakeClock) -> None:
    await store.record_event(event_at(clock(), name="old"))
    await store.record_event(event_at(clock(), name="seen again"))
    clock.advance(23 * HOUR)
    await store.record_event(event_at(clock(), name="seen again"))
    clock.advance(2 * HOUR)
    await store.record_event(event_at(clock(), name="new"))
    assert [found.name for found in await store.events()] == ["seen again", "new"]


async def test_expired_events_are_searched_once_an_hour(
    store: SqliteStore, worker: Worker, engine: Engine, clock: FakeClock
) -> None:
    statements: list[str] = []
    trace = partial(engine.database.connection.set_trace_callback, statements.append)
    await worker.run(trace, writes=False)
    for _ in range(240):
        clock.advance(60)
        await store.record_event(event_at(clock()))
    searches = [statement for statement in statements if "DELETE FROM events WHERE last_seen" in statement]
    assert len(searches) == 4
