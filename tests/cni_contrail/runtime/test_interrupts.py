"""Signals wait until what was begun is known, and are not lost."""

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
    """Has SIGTERM raise as Ctrl-C does: its default would end the tests."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_arrives_meanwhile_is_raised_at_the_end(number: signal.Signals) -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupt_and_go_on(number, done)
    assert done


def test_none_is_raised_if_none_arrived() -> None:
    with interrupts_held():
        pass


def test_an_error_inside_comes_first() -> None:
    with pytest.raises(ZeroDivisionError), interrupts_held():
        _ = 1 / 0


def test_the_handlers_of_before_are_back_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with interrupts_held():
        assert signal.getsignal(signal.SIGINT) not in before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_other_threads_have_nothing_to_hold_back() -> None:
    handlers: list[object] = []

    def look() -> None:
        with interrupts_held():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


def test_sigterm_interrupts_for_as_long_as_it_is_asked_to() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before
