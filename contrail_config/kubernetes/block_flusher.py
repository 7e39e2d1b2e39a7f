"""Brings the edits of the ledger to the server, and reads again what is not known for certain.

A write that failed may have been done all the same: no answer came, or one that the server failed, or a repetition was
refused after a first try that was not answered. What watches tell is no help, since it may come while the write is
still waited for, or not at all. So every block whose write failed is in doubt, for whatever reason, and is read again
before anything else is planned.

Not promised: that a write is found which the server does after that reading, having cut the connection before.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar, cast

from contrail_config.errors import StoreError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeConflictError, KubeError, KubeExistsError, KubeNotFoundError
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.allocation_request import Failures
from contrail_config.kubernetes.blocks import Block, BlockKey, read_block
from contrail_config.kubernetes.errors import as_store_error, store_error
from contrail_config.kubernetes.kinds import ADDRESS_BLOCKS

log = logging.getLogger(__name__)

_AT_ONCE: Final = 64

_LEFT_EMPTY: Final = 60.0
"""Seconds until an empty block is tried again that could not be deleted: it does no harm."""

T = TypeVar("T")


class BlockFlusher:
    """Saves for one ledger, of which nothing is edited meanwhile."""

    def __init__(self, client: KubeClient, ledger: AllocationCache, *, clock: Callable[[], float]) -> None:
        self._client = client
        self._ledger = ledger
        self._clock = clock
        self._requests = asyncio.Semaphore(_AT_ONCE)

    async def save(self) -> Failures:
        """Writes all blocks that were edited, and returns those that could not be."""
        blocks = self._ledger.to_save()
        outcomes = await _all(self._save_block(block) for block in blocks)
        failures = {key: error for key, saved, error in outcomes if not saved}
        for key, error in failures.items():
            if self._ledger.block(key).is_superfluous:
                self._leave_empty(key, error)
        return failures

    async def read_doubtful(self) -> None:
        """Takes in what is in doubt, as it is. Raises StoreError if that cannot be read: it stays in doubt."""
        await _all(self._read_doubtful(key) for key in self._ledger.doubtful)

    async def _save_block(self, block: Block) -> tuple[BlockKey, bool, StoreError | None]:
        problem: StoreError
        try:
            async with self._requests:
                return block.key, await self._write_or_read(block), None
        except KubeError as error:
            problem = store_error(error, _title(block.key))
        except ValueError as error:
            problem = StoreError(f"{_title(block.key)} holds nonsense: {error}")
        self._ledger.doubt(block.key)
        return block.key, False, problem

    async def _write_or_read(self, block: Block) -> bool:
        """Writes a block; False if somebody else wrote it, so that it was read again."""
        try:
            self._ledger.saved(block.key, await self._write(block))
        except (KubeConflictError, KubeExistsError, KubeNotFoundError) as error:
            log.info("%s, so it is read again", error)
            self._ledger.adopt(await self._read(block.key), now=self._clock())
            return False
        return True

    def _leave_empty(self, key: BlockKey, error: StoreError | None) -> None:
        self._ledger.leave_empty(key, until=self._clock() + _LEFT_EMPTY)
        if error is not None:
            log.warning("%s (it is empty, and cannot be deleted: again in %d s)", error, _LEFT_EMPTY)

    async def _read_doubtful(self, key: BlockKey) -> None:
        try:
            async with self._requests:
                with as_store_error(_title(key)):
                    block = await self._read(key)
        except ValueError as error:
            log.warning("%s holds nonsense: %s", _title(key), error)
            block = self._ledger.block(key)
        if key in self._ledger.doubtful:  # else a watch told something newer meanwhile
            self._ledger.adopt(block, now=self._clock())

    async def _write(self, block: Block) -> str | None:
        """Returns the version that the block is kept as, None if there is nothing to keep."""
        name = block.key.name
        if block.version is None:
            return (await self._client.create(ADDRESS_BLOCKS, block.write())).metadata.resource_version
        if block.entries:
            return (await self._client.replace(ADDRESS_BLOCKS, name, block.write())).metadata.resource_version
        await self._client.delete(ADDRESS_BLOCKS, name, resource_version=block.version)
        return None

    async def _read(self, key: BlockKey) -> Block:
        try:
            return read_block(await self._client.get(ADDRESS_BLOCKS, key.name), now=self._clock())
        except KubeNotFoundError:
            return Block(key)


async def _all(requests: Iterable[Awaitable[T]]) -> list[T]:
    """Returns what they return, or raises what one raised, once all have ended."""
    outcomes = await asyncio.gather(*requests, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return cast(list[T], outcomes)


def _title(key: BlockKey) -> str:
    return f"address block {key.name}"
