"""An event loop whose clock runs faster than the world's: for what waits many seconds by contract.

What is awaited from outside of the loop, as answers over the network, seems to take longer by the same factor.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

SPEED = 10.0

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(timeout if timeout is None else timeout / SPEED)


class FastLoop(asyncio.SelectorEventLoop):
    """Its clock runs `SPEED` times as fast, and can be set forward."""

    def __init__(self) -> None:
        self._ahead = 0.0
        super().__init__(_Selector())

    def time(self) -> float:
        return super().time() * SPEED + self._ahead

    def jump(self, seconds: float) -> None:
        """Lets time pass in which the process did not run."""
        self._ahead += seconds


def run_fast(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` in a loop of its own."""
    with asyncio.Runner(loop_factory=FastLoop) as runner:
        return runner.run(work)


def jump(seconds: float) -> None:
    """Lets time pass in which the process did not run."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, FastLoop)
    loop.jump(seconds)
