"""The queue of calls: in order, a few at work at a time, and nobody waits for a call that waits."""

import functools
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from cni_contrail.daemon.call_queue import CallQueue, without_slot
from cni_contrail.daemon.configuration import DaemonConfiguration
from cni_contrail.daemon.execution_context import DaemonContext
from cni_contrail.daemon.workers import Workers
from cni_contrail.deadline import Deadline
from cni_contrail.errors import TryAgainError

TIMEOUT = 20  # seconds

MakeQueue = Callable[..., CallQueue]


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers()
    workers.start()
    yield workers
    assert workers.drain(TIMEOUT)


@pytest.fixture
def make_queue(workers: Workers) -> MakeQueue:
    def make(*, slots: int, limit: int = 100) -> CallQueue:
        return CallQueue(workers.run, "calls", slots=slots, limit=limit)

    return make


class Step:
    """Lets a test see that a call reached a point, and lets the call go on."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.allowed = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.allowed.wait(TIMEOUT)


@pytest.fixture
def long_waits_free_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deadline, "around_long_waits", without_slot)


def test_calls_begin_in_order_and_only_in_a_slot(make_queue: MakeQueue, workers: Workers) -> None:
    queue, first, begun = make_queue(slots=1), Step(), list[int]()
    queue.submit(first)
    for number in range(50):
        queue.submit(functools.partial(begun.append, number))
    assert first.reached.wait(TIMEOUT)
    assert begun == []
    first.allowed.set()
    assert workers.drain(TIMEOUT)
    assert begun == list(range(50))


def test_no_more_calls_work_than_there_are_slots(make_queue: MakeQueue, workers: Workers) -> None:
    queue, steps = make_queue(slots=3), [Step() for _ in range(6)]
    for step in steps:
        queue.submit(step)
    for step in steps[:3]:
        assert step.reached.wait(TIMEOUT)
    assert not any(step.reached.is_set() for step in steps[3:])
    for step in steps:
        step.allowed.set()
    assert workers.drain(TIMEOUT)


def test_a_call_that_waits_lets_others_begin(make_queue: MakeQueue) -> None:
    queue, waiting, other = make_queue(slots=1), Step(), Step()

    def wait() -> None:
        with without_slot():
            waiting()

    queue.submit(wait)
    queue.submit(other)
    assert other.reached.wait(TIMEOUT)
    waiting.allowed.set()
    other.allowed.set()


def test_a_call_that_has_waited_goes_before_new_ones(make_queue: MakeQueue, workers: Workers) -> None:
    queue, waiting, working, order = make_queue(slots=1), Step(), Step(), list[str]()

    def wait() -> None:
        with without_slot():
            waiting()
        order.append("returned")

    queue.submit(wait)
    queue.submit(working)
    queue.submit(lambda: order.append("new"))
    assert working.reached.wait(TIMEOUT)
    waiting.allowed.set()
    _await(lambda: bool(queue._returning))
    working.allowed.set()
    assert workers.drain(TIMEOUT)
    assert order == ["returned", "new"]


def test_a_rollback_does_not_wait_for_a_slot(make_queue: MakeQueue) -> None:
    queue, working, rolled_back = make_queue(slots=1), Step(), threading.Event()

    def fail() -> None:
        try:
            with without_slot():
                assert working.reached.wait(TIMEOUT)
                raise TryAgainError("cancelled")
        except TryAgainError:
            with without_slot():  # a rollback may wait as well
                rolled_back.set()

    queue.submit(fail)
    queue.submit(working)
    assert rolled_back.wait(TIMEOUT)
    working.allowed.set()


def test_a_slot_that_was_given_away_is_not_freed_twice(make_queue: MakeQueue, workers: Workers) -> None:
    queue = make_queue(slots=1)

    def fail() -> None:
        try:
            with without_slot():
                raise TryAgainError("cancelled")
        except TryAgainError:
            return

    for _ in range(20):
        queue.submit(fail)
    assert workers.drain(TIMEOUT)
    assert queue._free == 1


def test_too_many_calls_are_refused_until_one_ends(make_queue: MakeQueue, workers: Workers) -> None:
    queue, first = make_queue(slots=1, limit=2), Step()
    queue.submit(first)
    queue.submit(lambda: None)
    with pytest.raises(TryAgainError, match="too many calls: 2 have not ended"):
        queue.submit(lambda: None)
    first.allowed.set()
    assert workers.drain(TIMEOUT)
    queue.submit(lambda: None)


def test_a_call_runs_in_the_submitting_thread_if_it_can_begin(make_queue: MakeQueue, workers: Workers) -> None:
    queue, threads = make_queue(slots=1), list[int]()
    queue.submit(lambda: threads.append(threading.get_ident()), workers.run_here)
    assert threads == [threading.get_ident()]


def test_a_submitting_thread_does_not_wait_for_a_slot(make_queue: MakeQueue, workers: Workers) -> None:
    queue, first, threads = make_queue(slots=1), Step(), list[int]()
    queue.submit(first)
    queue.submit(lambda: threads.append(threading.get_ident()), workers.run_here)
    assert threads == []
    first.allowed.set()
    assert workers.drain(TIMEOUT)
    assert threads
    assert threads != [threading.get_ident()]


@pytest.mark.usefixtures("long_waits_free_slots")
def test_a_long_wait_frees_the_slot_and_a_short_one_keeps_it(make_queue: MakeQueue, workers: Workers) -> None:
    queue, ready, order = make_queue(slots=1), os.eventfd(0), list[str]()

    def wait(seconds: float, name: str) -> None:
        try:
            Deadline(seconds).wait_readable(ready)
        except TimeoutError:
            order.append(f"{name} timed out")
        else:
            order.append(f"{name} is over")

    queue.submit(lambda: wait(0.001, "short wait"))
    queue.submit(lambda: wait(TIMEOUT, "long wait"))
    queue.submit(lambda: os.eventfd_write(ready, 1))
    assert workers.drain(TIMEOUT)
    os.close(ready)
    assert order == ["short wait timed out", "long wait is over"]


@pytest.mark.usefixtures("long_waits_free_slots")
def test_a_pause_between_attempts_frees_the_slot_however_short_it_is(make_queue: MakeQueue, workers: Workers) -> None:
    queue, ends = make_queue(slots=4), threading.Event()
    other = Step()

    def retry() -> None:
        for _ in Deadline(TIMEOUT).attempts(0.001, 0.001):
            if ends.is_set():
                return

    for _ in range(4):
        queue.submit(retry)
    queue.submit(other)
    try:
        assert other.reached.wait(TIMEOUT / 4)
    finally:
        ends.set()
        other.allowed.set()
    assert workers.drain(TIMEOUT)


@pytest.mark.usefixtures("long_waits_free_slots")
@pytest.mark.parametrize("phase", ["make", "plug"])
def test_calls_that_wait_within_a_phase_do_not_block_each_other(
    make_queue: MakeQueue, workers: Workers, phase: str
) -> None:
    """On kernels before 6.8 the creation of links waits for carriers."""
    queue, context = make_queue(slots=4), DaemonContext(DaemonConfiguration(), json_lines=False)

    def work() -> None:
        with context.limit(phase):
            for _ in Deadline(0.1).attempts(0.02, 0.02):
                continue

    for _ in range(40):
        queue.submit(work)
    assert workers.drain(TIMEOUT)


def _await(condition: Callable[[], bool]) -> None:
    for _ in Deadline(TIMEOUT).attempts(0.001, 0.01):
        if condition():
            return
    raise AssertionError("the condition did not become true")
