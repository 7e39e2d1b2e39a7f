"""Progress: shown on a terminal after a while, and removed at the end; never in a pipe or a file."""

import asyncio
import io
from collections.abc import Iterator

import pytest

from contrailctl import progress
from contrailctl.progress import Progress
from tests.support.terminal import CLEARED, Terminal, opened_terminal


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with opened_terminal() as terminal:
        yield terminal


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command counts as slow at once."""
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)


@pytest.mark.usefixtures("slow")
async def test_the_stage_is_shown_and_removed_at_the_end(terminal: Terminal) -> None:
    async with Progress(terminal.stream) as progress:
        progress.stage("reading \x1b[2Jnodes")
        await terminal.shown("reading \\x1b[2Jnodes (")
        progress.stage("reading pods")
        text = await terminal.shown("reading pods (")
    assert "\x1b[2J" not in text
    assert terminal.rest().endswith(CLEARED)


async def test_nothing_is_shown_of_a_short_command(terminal: Terminal) -> None:
    async with Progress(terminal.stream) as progress:
        progress.stage("reading nodes")
    assert terminal.rest() == ""


@pytest.mark.usefixtures("slow")
async def test_a_pipe_gets_nothing() -> None:
    pipe = io.StringIO()
    async with Progress(pipe) as progress:
        await asyncio.sleep(0)
        progress.stage("reading nodes")
        await asyncio.sleep(0)
    assert pipe.getvalue() == ""
