"""Saves what operations do to the ledger, all that come at one moment together.

A block that holds the addresses of ten pods is written once, not ten times: operations that come while others are
saved wait for the next round, and a round begins no sooner than `pace` seconds after the one before. A lone operation
does not wait.

Each write states the version that was read, so a block that another manager wrote meanwhile is not overwritten: it is
read again, and the operations that relied on it are planned anew. No address is ever given twice, whoever is at work.
A caller that is cancelled stops waiting; its operation is done all the same.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from contrail_config.errors import StoreError, StoreUnavailableError
from contrail_config.kube.backoff import Backoff
from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeConflictError, KubeError, KubeExistsError, KubeNotFoundError
from contrail_config.kubernetes.blocks import Block, BlockKey, read_block
from contrail_config.kubernetes.draft import Draft
from contrail_config.kubernetes.errors import store_error
from contrail_config.kubernetes.job import Failures, Job
from contrail_config.kubernetes.kinds import BLOCKS
from contrail_config.kubernetes.ledger import Ledger

log = logging.getLogger(__name__)

PACE: Final = 0.05
"""Seconds: at 100 pods/s of four addresses in three networks, less than one write of a block for each pod."""

_ATTEMPTS: Final = 12
_AT_ONCE: Final = 64

T = TypeVar("T")


class Clerk:
    """Works in a task of its own, from the first operation until `close`. Holds `lock` while it edits and saves."""

    def __init__(self, client: KubeClient, ledger: Ledger, *, clock: Callable[[], float], pace: float) -> None:
        self.lock = asyncio.Lock()
        self._client = client
        self._ledger = ledger
        self._clock = clock
        self._pace = pace
        self._jobs: list[Job[Any]] = []
        self._wanted = asyncio.Event()
        self._writes = asyncio.Semaphore(_AT_ONCE)
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    async def do(self, operation: Callable[[Draft], T]) -> T:
        """Returns what the operation returned, once what it did is saved. Raises StoreError.

        After a StoreUnavailableError a part of it may be done: the same again does the rest.
        """
        if self._closed:
            raise StoreUnavailableError("the store is closed")
        job = Job(operation, Draft(self._ledger))
        self._jobs.append(job)
        self._wanted.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await job.future

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
                    self._ledger.restore(key)
                for job in jobs:
                    job.fail(StoreUnavailableError(f"addresses could not be saved: {error}"))

    async def _work_off(self, jobs: Sequence[Job[Any]]) -> None:
        """Plans and saves the jobs until all have ended."""
        backoff = Backoff(first=0.005, longest=0.5)
        for _ in range(_ATTEMPTS):
            if not jobs:
                return
            now = self._clock()
            self._ledger.end_holds(now)
            for job in jobs:
                job.plan(now)
            failures = await self._save()
            jobs = [job for job in jobs if not job.settle(failures)]
            if failures and jobs:
                await asyncio.sleep(backoff.next_pause())
        for job in jobs:
            job.fail(StoreUnavailableError(f"address blocks were changed by others in {_ATTEMPTS} attempts to write"))

    async def _save(self) -> Failures:
        blocks = self._ledger.to_save()
        outcomes = await asyncio.gather(*(self._save_block(block) for block in blocks))
        return {key: error for key, saved, error in outcomes if not saved}

    async def _save_block(self, block: Block) -> tuple[BlockKey, bool, StoreError | None]:
        """Writes a block, or reads it again if it was written by somebody else."""
        try:
            async with self._writes:
                try:
                    self._ledger.saved(block.key, await self._write(block))
                except (KubeConflictError, KubeExistsError, KubeNotFoundError) as error:
                    log.info("%s, so it is read again", error)
                    self._ledger.adopt(await self._read(block.key), now=self._clock())
                    return block.key, False, None
        except KubeError as error:
            self._ledger.restore(block.key)
            return block.key, False, store_error(error, f"address block {block.key.name}")
        except ValueError as error:
            self._ledger.restore(block.key)
            return block.key, False, StoreError(f"address block {block.key.name} holds nonsense: {error}")
        return block.key, True, None

    async def _write(self, block: Block) -> str | None:
        """Returns the version that the block is kept as, None if there is nothing to keep."""
        name = block.key.name
        if block.version is None:
            return (await self._client.create(BLOCKS, block.write())).metadata.resource_version
        if block.entries:
            return (await self._client.replace(BLOCKS, name, block.write())).metadata.resource_version
        await self._client.delete(BLOCKS, name, resource_version=block.version)
        return None

    async def _read(self, key: BlockKey) -> Block:
        try:
            return read_block(await self._client.get(BLOCKS, key.name), now=self._clock())
        except KubeNotFoundError:
            return Block(key)
