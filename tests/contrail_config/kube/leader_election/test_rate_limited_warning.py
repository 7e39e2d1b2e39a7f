"""A candidate that cannot reach the server logs when that starts, once per minute, and when it is over."""

import asyncio
import logging

import pytest

from contrail_config.kube.rate_limited_warning import INTERVAL, RateLimitedWarning
from tests.contrail_config.kube.leader_election.candidates import Setup, with_setup, within
from tests.support.fast_event_loop import run_fast


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def lines(log: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno == level]


def test_a_standby_warns_once_a_minute(log: pytest.LogCaptureFixture) -> None:
    @with_setup
    async def play(setup: Setup) -> None:
        await setup.leader("a")
        standby = await setup.candidate("b")
        await within(30, lambda: standby.election.holder == "a")
        await setup.server.stop()
        log.clear()
        await asyncio.sleep(5 * INTERVAL)

    play()
    about_lease = [line for line in lines(log, logging.WARNING) if line.startswith("lease manager: ")]
    # those of b; a logs one line before it loses the lease
    assert 4 <= len(about_lease) - 1 <= 6
    assert "cannot connect" in about_lease[0]


def test_the_recovery_is_logged(log: pytest.LogCaptureFixture) -> None:
    @with_setup
    async def play(setup: Setup) -> None:
        await setup.server.stop()
        standby = await setup.candidate("b")
        await within(30, lambda: standby.election.problem)
        assert lines(log, logging.WARNING)
        await asyncio.sleep(100)
        await setup.server.start()
        await within(30, lambda: standby.may_write)
        assert standby.election.problem is None

    play()
    (over,) = [line for line in lines(log, logging.INFO) if "recovered" in line]
    seconds = int(over.removeprefix("lease manager: recovered after ").removesuffix(" s"))
    assert 95 < seconds < 115


def test_nothing_is_logged_without_a_problem(log: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        RateLimitedWarning("it").clear()

    run_fast(play())
    assert lines(log, logging.INFO) == []


def test_the_newest_text_is_logged(log: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        warning = RateLimitedWarning("it")
        for text in ("is slow", "is silent", "is away"):
            warning.warn(text)
            await asyncio.sleep(0.6 * INTERVAL)

    run_fast(play())
    assert lines(log, logging.WARNING) == ["it: is slow", "it: is away"]


def test_a_problem_that_returns_is_a_new_one(log: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        warning = RateLimitedWarning("it")
        for _ in range(3):
            warning.warn("is away")
            await asyncio.sleep(2)
            warning.clear()

    run_fast(play())
    assert lines(log, logging.WARNING) == ["it: is away"] * 3
    assert lines(log, logging.INFO) == ["it: recovered after 2 s"] * 3
