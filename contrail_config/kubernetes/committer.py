"""Committer: batches concurrent address operations and writes their edits.

A block that contains the addresses of ten pods is written once, not ten times: operations that arrive during a flush
wait for the next round, and a round starts at least `flush_interval` seconds after the previous one. A single operation
does not wait.

Each write states the resource version that was read, so a block that another manager has changed is not overwritten: it
is read again, and the operations that depend on it are planned again. No address is ever allocated twice, however many
managers run. Blocks that a failed write left uncertain are read before anything is planned. While they cannot be read,
all operations fail, even one that seems to need no edit: the uncertain block might change that. After the loss of a
block (see `lost_blocks`) all operations fail for good.

A cancelled caller stops waiting; its operation still runs.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from contrail_config.errors import StoreError, StoreUnavailableError
from contrail_config.kube.backoff import Backoff
from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.address_operations import AddressOperation
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.allocation_request import AllocationRequest, Failures
from contrail_config.kubernetes.block_flusher import BlockFlusher, DeletionUnknownError
from contrail_config.kubernetes.change_set import ChangeSet
from contrail_config.kubernetes.lost_blocks import LostBlocks

log = logging.getLogger(__name__)

FLUSH_INTERVAL: Final = 0.05
"""Seconds: less than one block write for each pod, at 100 pods/s with four addresses in three networks each."""

_ATTEMPTS: Final = 12

_CLEANUP_INTERVAL: Final = 1.0
"""Seconds between clean-ups of blocks while there are no operations."""

T = TypeVar("T")


class Committer:
    """Runs in a task of its own, from the first operation until `close`. Holds `lock` while it edits and writes."""

    def __init__(
        self,
        client: KubeClient,
        cache: AllocationCache,
        lost: LostBlocks,
        *,
        clock: Callable[[], float],
        flush_interval: float,
    ) -> None:
        self.lock = asyncio.Lock()
        self._lost = lost
        self._cache = cache
        self._flusher = BlockFlusher(client, cache, clock=clock)
        self._clock = clock
        self._flush_interval = flush_interval
        self._requests: list[AllocationRequest[Any]] = []
        self._requested = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    async def execute(self, operation: AddressOperation[T]) -> T:
        """Returns the result of the operation once its edits are written. Raises StoreError.

        After a StoreUnavailableError, parts of it may be written; repeating the operation completes it.
        """
        if self._closed:
            raise StoreUnavailableError("the store is closed")
        request = AllocationRequest(operation, ChangeSet(self._cache))
        self._requests.append(request)
        self._requested.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await request.future

    async def finish_round(self) -> None:
        """Returns when the round in progress has ended, and uncertain blocks are read. Raises StoreError."""
        async with self.lock:
            await self._read_uncertain()

    async def _read_uncertain(self) -> None:
        """Reads all uncertain blocks. The caller must hold `lock`. Raises StoreError, also after a loss."""
        self._lost.check()
        await self._flusher.read_uncertain()
        self._lost.check()  # the watch may have reported a loss meanwhile

    async def close(self) -> None:
        """Finishes the pending operations."""
        self._closed = True
        if self._task is not None:
            while self._requests or self.lock.locked():  # the lock is held by a round in progress
                await self._commit_round()
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLEANUP_INTERVAL):
                    await self._requested.wait()
            self._requested.clear()
            started = loop.time()
            await self._commit_round()
            await asyncio.sleep(max(0.0, started + self._flush_interval - loop.time()))

    async def _commit_round(self) -> None:
        async with self.lock:
            requests, self._requests = self._requests, []
            try:
                await self._commit(requests)
            except Exception as error:
                log.exception("address blocks: unexpected error in a commit")
                # Nobody knows how far it came; the next round reads these blocks from the server.
                for key in list(self._cache.dirty):
                    self._cache.mark_uncertain(key)
                _fail(requests, StoreUnavailableError(f"addresses: commit failed: {error}"))

    async def _commit(self, requests: Sequence[AllocationRequest[Any]]) -> None:
        """Plans and writes the requests until all have finished, together with a few clean-ups."""
        if not requests and not self._cache.needs_cleanup(self._clock()):
            return
        backoff = Backoff(first=0.005, longest=0.5)
        unknown: StoreError | None = None
        for _ in range(_ATTEMPTS):
            try:
                await self._read_uncertain()
            except DeletionUnknownError as error:
                unknown = error
                await asyncio.sleep(backoff.next_pause())
                continue
            except StoreError as error:
                _fail(requests, error)
                return
            now = self._clock()
            self._cache.expire_holds(now)  # no block is dirty here: all edits were written or rolled back
            for request in requests:
                request.plan(now)
            failures = _relevant(requests, await self._flusher.flush())
            unknown = None
            requests = [request for request in requests if not request.finish(failures)]
            if not requests:
                return
            if failures:
                await asyncio.sleep(backoff.next_pause())
        for request in requests:
            problem = f"address blocks: changed by other writers in each of {_ATTEMPTS} attempts"
            request.give_up(unknown or StoreUnavailableError(problem))


def _relevant(requests: Iterable[AllocationRequest[Any]], failures: Failures) -> Failures:
    """Drops the failures of blocks that no request needs: those that could not be cleaned up."""
    needed = {key for request in requests for key in request.blocks}
    return {key: error for key, error in failures.items() if error is None or key in needed}


def _fail(requests: Iterable[AllocationRequest[Any]], error: Exception) -> None:
    for request in requests:
        request.fail(error)
