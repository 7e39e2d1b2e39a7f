"""Change log: one entry for each object, bounds, positions, and recording only while somebody watches."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from manager.api.change_log import ChangeLog, LogClosedError, TooManyWatchesError
from manager.api.types import WatchedKind
from tests.support.fake_clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def publish(change_log: ChangeLog, name: str, message: bytes = b"{}") -> None:
    change_log.publish(name, WatchedKind.PODS, namespace="blue", name=name, message=message)


def is_recording(change_log: ChangeLog) -> bool:
    return change_log.is_recording


def names_after(change_log: ChangeLog, number: int) -> list[str] | None:
    entries = change_log.after(number)
    return None if entries is None else [entry.name for entry in entries]


def test_a_further_change_of_an_object_replaces_the_earlier_one() -> None:
    change_log = ChangeLog()
    for name in ("a", "b", "a"):
        publish(change_log, name)
    assert names_after(change_log, 0) == ["b", "a"]
    assert names_after(change_log, 2) == ["a"]
    assert names_after(change_log, 3) == []


def test_changes_come_in_batches_oldest_first() -> None:
    change_log = ChangeLog()
    for number in range(600):
        publish(change_log, str(number))
    found, position = [], 0
    while batch := change_log.after(position):
        assert len(batch) <= 256
        found += [entry.name for entry in batch]
        position = batch[-1].number
    assert found == [str(number) for number in range(600)]


@pytest.mark.parametrize("change_log", [ChangeLog(max_entries=2), ChangeLog(max_bytes=20)])
def test_who_has_not_read_what_the_bounds_drop_has_lost_changes(change_log: ChangeLog) -> None:
    with change_log.watch():
        for name in ("a", "b"):
            publish(change_log, name, b"0123456789")
        assert names_after(change_log, 0) == ["a", "b"]
        publish(change_log, "c", b"0123456789")
        assert names_after(change_log, 0) is None
        assert names_after(change_log, 1) == ["b", "c"]
        assert change_log.number_of(change_log.id_of(0)) is None
        assert change_log.number_of(change_log.id_of(1)) == 1


def test_an_object_that_changes_often_takes_the_space_of_one() -> None:
    change_log = ChangeLog(max_entries=2, max_bytes=20)
    for name in ("a", "b", *("a" for _ in range(100))):
        publish(change_log, name, b"0123456789")
    assert names_after(change_log, 0) == ["b", "a"]


def test_changes_are_recorded_while_somebody_watches_and_for_a_while_after(clock: FakeClock) -> None:
    change_log, started = ChangeLog(retention=60.0, clock=clock), []
    change_log.on_start(lambda: started.append(clock()))
    assert not is_recording(change_log)
    with change_log.watch():
        assert is_recording(change_log)
        publish(change_log, "a")
        with change_log.watch():
            assert len(change_log) == 2
        clock.advance(1000.0)
        assert is_recording(change_log)
    position = change_log.id_of(change_log.position)
    clock.advance(59.0)
    assert is_recording(change_log)
    publish(change_log, "b")
    assert len(started) == 1
    with change_log.watch():
        number = change_log.number_of(position)
        assert number is not None
        assert names_after(change_log, number) == ["b"]
    clock.advance(60.0)
    assert not is_recording(change_log)
    with change_log.watch():
        assert len(started) == 2
        assert change_log.number_of(position) is None


@pytest.mark.parametrize(
    "event_id", ["", "1", "-", "other-0", "{}-", "{}-x", "{}-1", "{}--1", "{}-²", "{}-" + 30 * "9"]
)
def test_an_id_that_is_not_of_this_feed_is_unknown(event_id: str) -> None:
    change_log = ChangeLog()
    identity = change_log.id_of(0).partition("-")[0]
    with change_log.watch():
        assert change_log.number_of(event_id.replace("{}", identity)) is None
        assert change_log.number_of(change_log.id_of(0)) == 0


def test_the_number_of_watches_is_bounded() -> None:
    change_log = ChangeLog(max_watches=2)
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(change_log.watch())
        with pytest.raises(TooManyWatchesError, match="limit is 2"), change_log.watch():
            pass
        assert len(change_log) == 2
    with change_log.watch():
        assert len(change_log) == 1


async def test_all_who_wait_are_woken_by_a_change_and_by_the_end() -> None:
    change_log = ChangeLog()
    ends: list[Callable[[], None]] = [lambda: publish(change_log, "a"), change_log.close]
    for end in ends:
        waiting = [asyncio.create_task(change_log.wait(change_log.position, seconds=60.0)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # does not affect the others
        await asyncio.sleep(0)
        end()
        async with asyncio.timeout(10.0):
            await asyncio.gather(*waiting[1:])
        assert waiting[0].cancelled()
    async with asyncio.timeout(10.0):
        await change_log.wait(change_log.position, seconds=60.0)
    with pytest.raises(LogClosedError), change_log.watch():
        pass
