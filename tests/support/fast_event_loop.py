"""An event loop whose clock goes on only while nothing else is to be done: for what waits many seconds by contract.

All parties must live in the loop, servers too: a wait then takes no time, and a slow machine makes nothing late. What
comes from outside of the loop is not waited for.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_DELIVERY = 0.0005  # seconds in which the kernel has surely delivered what was sent within the machine

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Passes over the time in which no descriptor becomes ready."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout if timeout is None else min(timeout, _DELIVERY))
        if timeout is not None and not ready:
            self.now += max(timeout, 0)
        return ready


class FastLoop(asyncio.SelectorEventLoop):
    """Its clock begins at 0, and can be set forward."""

    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def jump(self, seconds: float) -> None:
        """Lets time pass in which the process did not run."""
        self._clock.now += seconds


def run_fast(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` in a loop of its own."""
    with asyncio.Runner(loop_factory=FastLoop) as runner:
        return runner.run(work)


def jump(seconds: float) -> None:
    """Lets time pass in which the process did not run."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, FastLoop)
    loop.jump(seconds)
