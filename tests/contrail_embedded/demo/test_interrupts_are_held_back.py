"""Ctrl-C waits until what was begun is known, and is not lost."""

import os
import signal

import pytest

from contrail_embedded.demo.interrupts import interrupts_held


def interrupt_and_go_on(number: signal.Signals, done: list[str]) -> None:
    with interrupts_held():
        os.kill(os.getpid(), number)
        done.append("after the signal")


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
