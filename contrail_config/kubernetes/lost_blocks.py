"""Lost blocks: address blocks that somebody else deleted while they were in use, or wrote without addresses in use.

Their addresses look free on the server, so nothing may be allocated any more: this process has to end, and the next
leader recovers the addresses in use from the virtual machines. Before that, deleted blocks are created again as they
were last seen, so that holds, which no virtual machine shows, are not lost either. That is best effort: somebody may
still be deleting blocks, or may have created others in their place.

Not noticed: an edit that turns an address in use into a held one, or one of an address whose pod is being deleted.
"""

import asyncio
import logging
from typing import Final, NoReturn

import msgspec

from contrail_config.errors import AddressesLostError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeError, KubeExistsError
from contrail_config.kubernetes.blocks import Block, BlockKey
from contrail_config.kubernetes.kinds import ADDRESS_BLOCKS

log = logging.getLogger(__name__)

_RESTORE_DEADLINE: Final = 3.0
"""Seconds for all blocks together; a leader that steps down should not delay the next one."""

_MAX_REQUESTS: Final = 64

DELETED: Final = "deleted by somebody else while its addresses are in use"
CHANGED: Final = "addresses of running pods were removed from it by somebody else"
"""Problems of lost blocks."""


class LostBlocks:
    """The first loss fails all later operations; `restore` writes the blocks again."""

    def __init__(self) -> None:
        self._blocks: dict[BlockKey, Block] = {}
        self._problem = ""
        self._lost = asyncio.Event()

    def add(self, name: str, block: Block | None, *, problem: str) -> None:
        """Records a loss; `block` is the last state of a deleted object, None if that was not decodable."""
        if not self._problem:  # others are likely to follow, which the log of `restore` counts
            self._problem = f"address block {name}: {problem}"
            log.error("%s", self._problem)
        if block is not None:
            self._blocks[block.key] = block
        self._lost.set()

    def check(self) -> None:
        """Raises AddressesLostError after a loss."""
        if self._problem:
            raise AddressesLostError(self._problem)

    async def wait(self) -> NoReturn:
        """Waits for a loss. Raises AddressesLostError."""
        await self._lost.wait()
        raise AddressesLostError(self._problem)

    async def restore(self, client: KubeClient) -> None:
        """Creates the blocks again in their last state, as far as possible."""
        if not self._blocks:
            return
        log.info("address blocks: creating %d deleted ones again", len(self._blocks))
        requests = asyncio.Semaphore(_MAX_REQUESTS)
        try:
            async with asyncio.timeout(_RESTORE_DEADLINE), asyncio.TaskGroup() as tasks:
                for block in self._blocks.values():
                    tasks.create_task(_create(client, block, requests))
        except TimeoutError:
            log.warning("address blocks: not all of %d deleted blocks could be created again", len(self._blocks))


async def _create(client: KubeClient, block: Block, requests: asyncio.Semaphore) -> None:
    name = block.key.name
    try:
        async with requests:
            await client.create(ADDRESS_BLOCKS, msgspec.structs.replace(block, version=None).to_object())
    except KubeExistsError:
        log.warning("address block %s: created by somebody else in the meantime", name)
    except KubeError as error:
        log.warning("address block %s: not created again: %s", name, error)
