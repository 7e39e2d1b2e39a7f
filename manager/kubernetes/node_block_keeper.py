"""Node block keeper: an address of the pod network for each node with an agent, before its first pod.

A node sends to pods on other nodes with an address in a block of its own. It has blocks as long as it has pods; from
the first report of its agent on it keeps one without pods, too. It does so as long as there is its Node object, not its
report: an agent that does not run for a while is no reason to take an address that the kernel uses.

Where the pod network has no block to spare, the node has an address only while it has pods; it is tried again later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from contrail_config.errors import StoreError
from contrail_config.kube.backoff import Backoff
from contrail_config.kube.work_queue import WorkQueue
from contrail_config.kubernetes.node_blocks import NodeBlocks

log = logging.getLogger(__name__)

_RETRY: Final = 300.0
"""Seconds until it is tried again if there was no block to spare: those of gone nodes are held as long."""

_CONCURRENCY: Final = 64
"""Nodes at a time: the store writes their blocks together."""


class KnownNodes(Protocol):
    """The part of `NetworkSlices` that is used here."""

    def has_node(self, node: str, /) -> bool:
        """Returns whether there is such a node."""

    async def nodes_listed(self) -> None:
        """Waits until all nodes are listed. Raises StoreError."""


class NodeBlockKeeper:
    """Lets nodes keep blocks of one network while `run` runs. Belongs to one event loop."""

    def __init__(self, blocks: NodeBlocks, nodes: KnownNodes, network_uuid: str) -> None:
        self._blocks = blocks
        self._nodes = nodes
        self._network_uuid = network_uuid
        self._reported: set[str] = set()
        self._is_running = False
        self.queue = WorkQueue(self._reconcile, limit=_CONCURRENCY, transient=StoreError)

    def reported(self, node: str) -> None:
        """Takes notice of a node that has an agent. Idempotent, and cheap."""
        if node not in self._reported:
            self._reported.add(node)
            self.changed(node)

    def report_removed(self, node: str) -> None:
        """Takes notice of a node whose report was deleted. It keeps its block while there is such a node."""
        self._reported.discard(node)

    def changed(self, node: str) -> None:
        """Takes notice of a node that has appeared or is gone."""
        if self._is_running:
            self.queue.add(node)

    async def run(self, ready: Callable[[], Awaitable[object]]) -> None:
        """Runs until it is cancelled, from the moment on when `ready` returns: existing addresses are recovered."""
        await ready()
        backoff = Backoff(first=1.0, longest=30.0)
        try:
            while not self._is_running:
                try:
                    await self._begin()
                except StoreError as error:
                    pause = backoff.next_pause()
                    log.warning("blocks of nodes: not known yet: %s (retry in %.1f s)", error, pause)
                    await asyncio.sleep(pause)
            await asyncio.Event().wait()
        finally:
            await self.queue.close()

    async def _begin(self) -> None:
        await self._nodes.nodes_listed()
        nodes = await self._blocks.nodes()
        self._is_running = True
        for node in sorted(self._reported | nodes):
            self.queue.add(node)

    async def _reconcile(self, node: str) -> None:
        if not self._nodes.has_node(node):
            await self._blocks.release(node)
        elif node in self._reported and not await self._blocks.keep(self._network_uuid, node):
            log.info("node %s: the pod network has no block to spare for its address", node)
            self.queue.add_after(node, _RETRY)
