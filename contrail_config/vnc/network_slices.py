"""Network slices for an agent, kept up to date from what its reader follows: virtual machines and virtual routers.

Only those of networks that are watched are derived, since a slice is derived as a whole for each pod that changes it.
"""

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from contrail_config.objects import NetworkSlice, VirtualMachine
from contrail_config.store import Change, ChangeType
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.slice_table import SliceKey, SliceTable
from contrail_config.vnc.watcher import Watcher


class _Subscription(NamedTuple):
    """A watcher, and the networks that it follows."""

    watcher: Watcher[NetworkSlice]
    networks: frozenset[str]


class NetworkSlices:
    """Derives slices from a cache."""

    def __init__(self, cache: Cache) -> None:
        self._table = SliceTable()
        self._slices: dict[SliceKey, NetworkSlice] = {}  # of watched networks; of others only while nothing changes
        self._subscriptions: list[_Subscription] = []
        cache.machines.on_change(self._machine_changed)
        cache.routers.on_change(self._router_changed)

    @asynccontextmanager
    async def watch(self, networks: Collection[str]) -> AsyncIterator[AsyncIterator[Change[NetworkSlice]]]:
        """Yields the slices of these networks, and every change of them, until the context is left."""
        known = [found for key in sorted(self._table.keys(networks)) if (found := self._derived(key)) is not None]
        initial = [Change(ChangeType.ADDED, each) for each in known]
        subscription = _Subscription(Watcher([*initial, Change(ChangeType.SYNCED, None)]), frozenset(networks))
        self._subscriptions.append(subscription)
        try:
            yield subscription.watcher
        finally:
            subscription.watcher.abort()
            self._subscriptions = [each for each in self._subscriptions if each is not subscription]

    def end(self) -> None:
        """Ends all watches after the changes so far."""
        for subscription in self._subscriptions:
            subscription.watcher.end()

    def _machine_changed(self, before: VirtualMachine | None, after: VirtualMachine | None) -> None:
        self._update(self._table.machine_changed(before, after))

    def _router_changed(self, name: str, addresses: tuple[str, ...] | None) -> None:
        self._update(self._table.router_changed(name, addresses))

    def _update(self, keys: Iterable[SliceKey]) -> None:
        watched = {network for subscription in self._subscriptions for network in subscription.networks}
        for key in sorted(keys):
            before = self._slices.pop(key, None)
            after = self._derived(key) if key.network_uuid in watched else None
            if key.network_uuid in watched and after != before:
                self._report(key, before, after)

    def _derived(self, key: SliceKey) -> NetworkSlice | None:
        if key not in self._slices and (found := self._table.slice(key)) is not None:
            self._slices[key] = found
        return self._slices.get(key)

    def _report(self, key: SliceKey, before: NetworkSlice | None, after: NetworkSlice | None) -> None:
        kind = ChangeType.ADDED if before is None else ChangeType.MODIFIED
        change = Change(ChangeType.DELETED, before) if after is None else Change(kind, after)
        for subscription in self._subscriptions:
            if key.network_uuid in subscription.networks:
                subscription.watcher.push(change)
