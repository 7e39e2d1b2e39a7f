"""Signals of the live check: they end it, and let it remove what it has created."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from contrailctl.check.live.interrupts import interrupts_cancel


@pytest.fixture
def _own_handlers() -> Iterator[None]:
    """Signals as in a shell, whatever the test runner inherited."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def _interrupted(number: signal.Signals, cleaned: list[str]) -> None:
    with interrupts_cancel():
        try:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.2)  # is cancelled
        finally:
            await asyncio.sleep(0)
            cleaned.append("pods")


@pytest.mark.usefixtures("_own_handlers")
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: signal.Signals(number).name
)
def test_a_signal_ends_the_check_after_it_has_cleaned_up(number: signal.Signals) -> None:
    cleaned: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(_interrupted(number, cleaned))
    assert cleaned == ["pods"]


async def _interrupted_twice(first: signal.Signals, second: signal.Signals, cleaned: list[str]) -> None:
    with interrupts_cancel():
        try:
            os.kill(os.getpid(), first)
            await asyncio.sleep(0.2)
        finally:
            os.kill(os.getpid(), second)
            await asyncio.sleep(0.05)
            cleaned.append("pods")


@pytest.mark.usefixtures("_own_handlers")
@pytest.mark.parametrize(
    ("second", "expected"), [(signal.SIGHUP, ["pods"]), (signal.SIGTERM, [])], ids=["SIGHUP", "SIGTERM"]
)
def test_a_second_signal_ends_the_clean_up_but_for_that_of_a_terminal(
    second: signal.Signals, expected: list[str]
) -> None:
    cleaned: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(_interrupted_twice(signal.SIGHUP, second, cleaned))
    assert cleaned == expected


@pytest.mark.usefixtures("_own_handlers")
def test_a_terminal_that_goes_away_does_not_end_a_check_under_nohup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    cleaned: list[str] = []
    asyncio.run(_interrupted(signal.SIGHUP, cleaned))
    assert cleaned == ["pods"]
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
