"""Saves what operations do to the ledger, all that come at one moment together.

A block that holds the addresses of ten pods is written once, not ten times: operations that come while others are
saved wait for the next round, and a round begins no sooner than `pace` seconds after the one before. A lone operation
does not wait.

Each write states the version that was read, so a block that another manager wrote meanwhile is not overwritten: it is
read again, and the operations that relied on it are planned anew. No address is ever given twice, whoever is at work.
What a failed write left in doubt is read before anything is planned; while it cannot be, all operations fail: also one
that has nothing to do might have something.
A caller that is cancelled stops waiting; its operation is done all the same.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from contrail_config.errors import StoreError, StoreUnavailableError
from contrail_config.kube.backoff import Backoff
from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.allocation_request import AllocationRequest, Failures
from contrail_config.kubernetes.block_flusher import BlockFlusher
from contrail_config.kubernetes.change_set import ChangeSet

log = logging.getLogger(__name__)

PACE: Final = 0.05
"""Seconds: at 100 pods/s of four addresses in three networks, less than one write of a block for each pod."""

_ATTEMPTS: Final = 12

T = TypeVar("T")


class Committer:
    """Works in a task of its own, from the first operation until `close`. Holds `lock` while it edits and saves."""

    def __init__(self, client: KubeClient, ledger: AllocationCache, *, clock: Callable[[], float], pace: float) -> None:
        self.lock = asyncio.Lock()
        self._ledger = ledger
        self._saver = BlockFlusher(client, ledger, clock=clock)
        self._clock = clock
        self._pace = pace
        self._jobs: list[AllocationRequest[Any]] = []
        self._wanted = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    async def do(self, operation: Callable[[ChangeSet], T]) -> T:
        """Returns what the operation returned, once what it did is saved. Raises StoreError.

        After a StoreUnavailableError a part of it may be done: the same again does the rest.
        """
        if self._closed:
            raise StoreUnavailableError("the store is closed")
        job = AllocationRequest(operation, ChangeSet(self._ledger))
        self._jobs.append(job)
        self._wanted.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await job.future

    async def read_doubtful(self) -> None:
        """Has the ledger hold what the server has. For who holds the lock. Raises StoreError."""
        await self._saver.read_doubtful()

    async def close(self) -> None:
        """Finishes what was begun."""
        self._closed = True
        if self._task is not None:
            while self._jobs or self.lock.locked():
                await self._do_round()
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            begun = loop.time()
            await self._do_round()
            await asyncio.sleep(max(0.0, begun + self._pace - loop.time()))

    async def _do_round(self) -> None:
        async with self.lock:
            jobs, self._jobs = self._jobs, []
            try:
                await self._work_off(jobs)
            except Exception as error:
                log.exception("addresses could not be saved")
                for key in list(self._ledger.unsaved):
                    self._ledger.doubt(key)
                _fail(jobs, StoreUnavailableError(f"addresses could not be saved: {error}"))

    async def _work_off(self, jobs: Sequence[AllocationRequest[Any]]) -> None:
        """Plans and saves the jobs until all have ended."""
        backoff = Backoff(first=0.005, longest=0.5)
        for _ in range(_ATTEMPTS):
            if not jobs:
                return
            try:
                await self._saver.read_doubtful()
            except StoreError as error:
                _fail(jobs, error)
                return
            now = self._clock()
            self._ledger.end_holds(now)
            for job in jobs:
                job.plan(now)
            failures = _concerning(jobs, await self._saver.save())
            jobs = [job for job in jobs if not job.settle(failures)]
            if failures and jobs:
                await asyncio.sleep(backoff.next_pause())
        for job in jobs:
            problem = f"address blocks were changed by others in {_ATTEMPTS} attempts to write"
            job.give_up(StoreUnavailableError(problem))


def _concerning(jobs: Iterable[AllocationRequest[Any]], failures: Failures) -> Failures:
    """Without those of blocks that no job needs: empty ones, which could not be deleted."""
    needed = {key for job in jobs for key in job.blocks}
    return {key: error for key, error in failures.items() if error is None or key in needed}


def _fail(jobs: Iterable[AllocationRequest[Any]], error: Exception) -> None:
    for job in jobs:
        job.fail(error)
