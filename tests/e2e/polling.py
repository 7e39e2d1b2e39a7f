"""Polling for changes made by other processes."""

import time
from collections.abc import Callable

DEADLINE = 30.0

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


def wait_until(
    holds: Callable[[], bool], *, what: str, otherwise: Callable[[], str] = str, deadline: float = DEADLINE
) -> None:
    """Polls until the condition holds; after `deadline` seconds fails with the text of `otherwise`.

    Between looks it sleeps about as long as a look takes: what is awaited needs the processor, too.
    """
    give_up = time.monotonic() + deadline
    while True:
        begun = time.monotonic()
        if holds():
            return
        ended = time.monotonic()
        assert ended < give_up, f"not {what} within {deadline:g} s: {otherwise()[-3000:]}"
        pause = min(max(ended - begun, _SHORTEST_PAUSE), _LONGEST_PAUSE)
        time.sleep(pause)  # noqa: TID251 - other processes are polled
