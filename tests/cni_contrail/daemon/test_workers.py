"""Worker threads: reused, and never fewer than are needed to go on."""

import functools
import threading
from collections.abc import Iterator

import pytest

from cni_contrail.daemon.workers import Workers

TIMEOUT = 20  # seconds


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers()
    workers.start()
    assert workers.drain(TIMEOUT)
    yield workers
    assert workers.drain(TIMEOUT)


def test_work_reuses_an_idle_thread(workers: Workers) -> None:
    threads: set[int] = set()
    for _ in range(20):
        workers.run(lambda: threads.add(threading.get_ident()))
        assert workers.drain(TIMEOUT)
    assert len(threads) == 1


def test_work_waits_for_a_thread_if_none_can_be_started(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that has reached its limit of processes."""

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    released, done = threading.Event(), list[int]()
    workers.run(functools.partial(_wait, released))
    for number in range(5):
        workers.run(functools.partial(done.append, number))
    assert done == []
    released.set()
    assert workers.drain(TIMEOUT)
    assert done == [0, 1, 2, 3, 4]


def test_most_threads_end_when_they_are_idle(workers: Workers) -> None:
    before, released = threading.active_count(), threading.Event()
    for _ in range(50):
        workers.run(functools.partial(_wait, released))
    assert threading.active_count() == before + 49
    released.set()
    assert workers.drain(TIMEOUT)
    for thread in threading.enumerate():
        if thread.name.endswith("(_serve)") and len(workers._idle) > 8:
            thread.join(TIMEOUT)
    assert len(workers._idle) <= 8


def test_draining_reports_work_that_does_not_end(workers: Workers) -> None:
    released = threading.Event()
    workers.run(functools.partial(_wait, released))
    assert not workers.drain(0.01)
    released.set()


def test_draining_waits_for_work_in_other_threads(workers: Workers) -> None:
    begun, released = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        _wait(released)

    thread = threading.Thread(target=workers.run_here, args=(work,))
    thread.start()
    assert begun.wait(TIMEOUT)
    assert not workers.drain(0.01)
    released.set()
    assert workers.drain(TIMEOUT)
    thread.join(TIMEOUT)


def _wait(released: threading.Event) -> None:
    released.wait(TIMEOUT)
