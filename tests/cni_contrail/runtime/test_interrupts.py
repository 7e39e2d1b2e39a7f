"""Signals are deferred to the end of the body, and not lost."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from cni_contrail.runtime.interrupts import interrupts_held, sigterm_interrupts


def interrupt_and_go_on(number: signal.Signals, done: list[str]) -> None:
    with interrupts_held():
        os.kill(os.getpid(), number)
        done.append("after the signal")


@pytest.fixture(autouse=True)
def raising_handlers() -> Iterator[None]:
    """Makes SIGTERM raise an exception: its default action would end the tests."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_deferred_signal_is_raised_at_the_end(number: signal.Signals) -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupt_and_go_on(number, done)
    assert done


def test_no_signal_is_raised_if_none_arrived() -> None:
    with interrupts_held():
        pass


def test_a_deferred_signal_is_raised_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), interrupts_held():
        _ = 1 / 0


def test_the_previous_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with interrupts_held():
        assert signal.getsignal(signal.SIGINT) not in before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_other_threads_defer_nothing() -> None:
    handlers: list[object] = []

    def look() -> None:
        with interrupts_held():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


def test_sigterm_interrupts_only_in_the_body() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before
