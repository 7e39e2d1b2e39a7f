"""Base of the stateful store tests: a Hypothesis state machine that drives a store and can reopen it."""

import asyncio
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from contrail_config.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.stores import StoreFactory

T = TypeVar("T")


class StoreMachine(RuleBasedStateMachine):
    """Rules are plain functions: `run` runs one awaitable in the event loop of the state machine."""

    factory: StoreFactory

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._runner = asyncio.Runner()
        self.clock = FakeClock()
        self.store: Store = self.run(self._open())

    def run(self, awaitable: Awaitable[T]) -> T:
        async def waited() -> T:
            async with asyncio.timeout(20):
                return await awaitable

        return self._runner.run(waited())

    def reopen(self) -> None:
        self.run(self.store.close())
        self.store = self.run(self._open())

    def teardown(self) -> None:
        self.run(self.store.close())
        self._runner.close()
        self._folder.cleanup()

    async def _open(self) -> Store:
        return await self.factory(Path(self._folder.name), self.clock)


def check(machine: type[StoreMachine], factory: StoreFactory, *, examples: int, steps: int) -> None:
    """Runs a state machine on the stores that the factory opens."""
    on_these_stores = type(machine.__name__, (machine,), {"factory": staticmethod(factory)})
    run_state_machine_as_test(on_these_stores, settings=settings(max_examples=examples, stateful_step_count=steps))
