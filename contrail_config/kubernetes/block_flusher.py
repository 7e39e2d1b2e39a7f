"""Block flusher: writes the dirty blocks of the allocation cache to the server, and reads uncertain ones again.

A failed write may have succeeded on the server: there was no response, or a server error, or a retry was rejected after
a first attempt without a response. Watch events do not help, since they may arrive before the response or not at all.
So every block whose write failed is uncertain, whatever the reason, and is read again before the next plan.

A block is deleted only once the server has it without addresses. So a watcher that sees the deletion of a block with
addresses knows that it was no manager.

Not guaranteed: detection of a write that the server performs after that read, having closed the connection before.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar, cast

from contrail_config.errors import StoreError, StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeConflictError, KubeError, KubeExistsError, KubeNotFoundError
from contrail_config.kube.resource import Metadata
from contrail_config.kubernetes.allocation_cache import CLEANUP_DELAY, AllocationCache
from contrail_config.kubernetes.allocation_request import Failures
from contrail_config.kubernetes.blocks import Block, BlockKey, decode_block
from contrail_config.kubernetes.errors import as_store_error, store_error
from contrail_config.kubernetes.kinds import ADDRESS_BLOCK_DOCUMENTS, ADDRESS_BLOCKS

log = logging.getLogger(__name__)

_MAX_REQUESTS: Final = 64

T = TypeVar("T")


class DeletionUnknownError(StoreUnavailableError):
    """Somebody deleted a block that was in use here; the watch has not reported yet whether it still was then."""


class BlockFlusher:
    """Reads and writes the blocks of one cache, which nobody edits meanwhile."""

    def __init__(self, client: KubeClient, cache: AllocationCache, *, clock: Callable[[], float]) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        self._requests = asyncio.Semaphore(_MAX_REQUESTS)

    async def flush(self) -> Failures:
        """Writes all dirty blocks, and returns those that could not be written."""
        blocks = self._cache.blocks_to_write()
        outcomes = await _gather(self._flush_block(block) for block in blocks)
        failures = {key: error for key, written, error in outcomes if not written}
        for key, error in failures.items():
            if self._cache.postpone_cleanup(key, self._clock()) and error is not None:
                log.warning("%s (clean-up, next attempt in %d s)", error, CLEANUP_DELAY)
        return failures

    async def read_uncertain(self) -> None:
        """Reads all uncertain blocks. Raises StoreError if one cannot be read, which stays uncertain."""
        await _gather(self._read_uncertain(key) for key in self._cache.uncertain)

    async def _flush_block(self, block: Block) -> tuple[BlockKey, bool, StoreError | None]:
        problem: StoreError
        try:
            async with self._requests:
                return block.key, await self._write_or_read(block), None
        except KubeError as error:
            problem = store_error(error, _title(block.key))
        self._cache.mark_uncertain(block.key)
        return block.key, False, problem

    async def _write_or_read(self, block: Block) -> bool:
        """Writes a block; returns False if another writer changed it, after reading it again.

        If that made the block invalid, it is sealed as soon as the watch reports it.
        """
        try:
            self._cache.mark_written(block.key, await self._write(block), now=self._clock())
        except (KubeConflictError, KubeExistsError, KubeNotFoundError) as error:
            log.info("%s: conflict, reading it again: %s", _title(block.key), error)
            await self._read_again(block.key)
            return False
        return True

    async def _read_again(self, key: BlockKey) -> None:
        try:
            found = await self._read(key)
        except ValueError as error:
            log.warning("%s: invalid content: %s", _title(key), error)
            self._cache.mark_uncertain(key)
            return
        if self._cache.awaits_deletion_event(found, now=self._clock()):
            self._cache.mark_uncertain(key)
        else:
            self._cache.replace(found, now=self._clock())

    async def _read_uncertain(self, key: BlockKey) -> None:
        try:
            async with self._requests:
                with as_store_error(_title(key)):
                    block = await self._read(key)
        except ValueError as error:
            log.warning("%s: invalid content: %s", _title(key), error)
            block = self._cache.block(key)  # keeps what is known; others must not wait for an invalid block
        if key not in self._cache.uncertain:
            return  # a watch event has delivered a newer version meanwhile
        if self._cache.awaits_deletion_event(block, now=self._clock()):
            raise DeletionUnknownError(f"{_title(key)}: deleted, its last content is not known yet")
        self._cache.replace(block, now=self._clock())

    async def _write(self, block: Block) -> Metadata | None:
        """Creates, replaces or deletes the block; returns its new metadata, None if it was deleted."""
        # Each request fails if the block is not at this version, so no other writer's allocation is overwritten.
        if block.version is None:
            return (await self._client.create(ADDRESS_BLOCKS, block.to_object())).metadata
        if block.entries or self._cache.confirmed(block.key).entries:
            return (await self._client.replace(ADDRESS_BLOCKS, block.key.name, block.to_object())).metadata
        await self._client.delete(ADDRESS_BLOCKS, block.key.name, resource_version=block.version)
        return None

    async def _read(self, key: BlockKey) -> Block:
        try:
            return decode_block(await self._client.get(ADDRESS_BLOCK_DOCUMENTS, key.name))
        except KubeNotFoundError:
            return Block(key)


async def _gather(requests: Iterable[Awaitable[T]]) -> list[T]:
    """Waits until all have ended; returns the results or raises the first error.

    Not a TaskGroup: that would cancel the other requests, whose writes would then have an unknown outcome.
    """
    outcomes = await asyncio.gather(*requests, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return cast(list[T], outcomes)


def _title(key: BlockKey) -> str:
    return f"address block {key.name}"
