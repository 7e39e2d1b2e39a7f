"""Event loop with a virtual clock that advances only while the loop is idle, for code with timeouts of many seconds.

Clients and servers must run in the same loop: waits then take no real time, and a slow host delays nothing. The clock
does not wait for anything outside the loop, such as threads and processes.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_DELIVERY = 0.0005  # seconds after which the kernel has delivered data sent over the loopback

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Advances the clock instead of waiting when no descriptor is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout if timeout is None else min(timeout, _DELIVERY))
        if timeout is not None and not ready:
            self.now += max(timeout, 0)
        return ready


class FastLoop(asyncio.SelectorEventLoop):
    """Event loop whose clock starts at 0."""

    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def jump(self, seconds: float) -> None:
        """Advances the clock, as after a suspension of the process."""
        self._clock.now += seconds


def run_fast(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` in a new loop."""
    with asyncio.Runner(loop_factory=FastLoop) as runner:
        return runner.run(work)


def jump(seconds: float) -> None:
    """Advances the clock, as after a suspension of the process."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, FastLoop)
    loop.jump(seconds)
