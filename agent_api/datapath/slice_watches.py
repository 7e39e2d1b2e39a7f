"""Watches the slices of the networks on this node, and only while they are on it, and of the pod network.

Networks of one group (see `SliceStore.slice_group`) share a watch, which is restarted when the set of its networks
changes; what is known of the others stays in use meanwhile. A watch that ends is restarted with exponential backoff and
jitter.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from agent_api.datapath.slice_index import SliceIndex
from contrail_config.errors import StoreError
from contrail_config.kube.backoff import Backoff
from contrail_config.store import ChangeType, SliceStore

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.2  # seconds
LONGEST_PAUSE = 10.0


class SliceWatches:
    """`networks` returns the uuids of the networks on this node; `on_change` is called after each change.

    `on_forget` is called with the uuid of each network whose slices are not known any more.
    """

    def __init__(
        self,
        store: SliceStore,
        index: SliceIndex,
        *,
        networks: Callable[[], AbstractSet[str]],
        on_change: Callable[[], None],
        on_forget: Callable[[str], None],
    ) -> None:
        self._store = store
        self._index = index
        self._networks = networks
        self._on_change = on_change
        self._on_forget = on_forget
        self._changed = asyncio.Event()
        self._followed: dict[str, frozenset[str]] = {}  # by group
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._problems: dict[str, str] = {}

    def changed(self) -> None:
        """Notes that the networks on this node may have changed."""
        self._changed.set()

    @property
    def problems(self) -> list[str]:
        """Why slices are out of date, each reason once."""
        return sorted(set(self._problems.values()))

    def all_problems(self) -> list[str]:
        """Returns the problems, and those that the store retries by itself without ending a watch."""
        return [*self.problems, *sorted(set(self._store.problems()))]

    async def run(self) -> None:
        """Watches until it is cancelled."""
        try:
            while True:
                self._changed.clear()
                await self._follow(self._networks())
                await self._changed.wait()
        finally:
            for group in list(self._tasks):
                await self._stop(group)

    async def _follow(self, networks: AbstractSet[str]) -> None:
        groups = defaultdict[str, set[str]](set)
        for uuid in networks:
            groups[self._store.slice_group(uuid)].add(uuid)
        for group in self._followed.keys() | groups.keys():
            wanted, before = frozenset(groups.get(group, ())), self._followed.get(group, frozenset())
            if wanted != before:
                await self._restart(group, wanted, before)

    async def _restart(self, group: str, wanted: frozenset[str], before: frozenset[str]) -> None:
        await self._stop(group)
        for uuid in before - wanted:
            self._index.forget(uuid)
            self._on_forget(uuid)
        if wanted:
            self._followed[group] = wanted
            self._tasks[group] = asyncio.create_task(self._watch(group, wanted))
        self._on_change()

    async def _stop(self, group: str) -> None:
        self._followed.pop(group, None)
        self._problems.pop(group, None)
        task = self._tasks.pop(group, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _watch(self, group: str, networks: frozenset[str]) -> None:
        backoff = Backoff(first=FIRST_PAUSE, longest=LONGEST_PAUSE)
        while True:
            try:
                await self._watch_once(group, networks, backoff)
                problem = "network slices: watch closed"
            except StoreError as error:
                problem = f"network slices: watch failed: {error}"
            self._problems[group] = problem
            log.warning("%s", problem)
            await asyncio.sleep(backoff.next_pause())

    async def _watch_once(self, group: str, networks: frozenset[str], backoff: Backoff) -> None:
        listing = self._index.listing(networks)
        async with self._store.watch_slices(networks) as changes:
            async for change in changes:
                listing.apply(change)
                if change.type is ChangeType.SYNCED:
                    self._problems.pop(group, None)
                    backoff.reset()
                self._on_change()
