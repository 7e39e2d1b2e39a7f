"""Polling for changes made by other processes."""

import time
from collections.abc import Callable

DEADLINE = 30.0


def wait_until(
    holds: Callable[[], bool], *, what: str, otherwise: Callable[[], str] = str, deadline: float = DEADLINE
) -> None:
    """Polls until the condition holds; after `deadline` seconds fails with the text of `otherwise`."""
    give_up = time.monotonic() + deadline
    while not holds():
        assert time.monotonic() < give_up, f"not {what} within {deadline:g} s: {otherwise()[-3000:]}"
        time.sleep(0.02)  # noqa: TID251 - other processes are polled
