"""Network slices for an agent, kept up to date from what its reader follows: virtual machines and virtual routers.

Only those of networks that are watched are derived, since a slice is derived as a whole for each pod that changes it.
"""

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import AbstractAsyncContextManager

from contrail_config.objects import NetworkSlice, VirtualMachine
from contrail_config.store import Change, ChangeType
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.slice_table import SliceKey, SliceTable
from contrail_config.vnc.subscriptions import Subscriptions


class NetworkSlices:
    """Derives slices from a cache."""

    def __init__(self, cache: Cache) -> None:
        self._table = SliceTable()
        self._slices: dict[SliceKey, NetworkSlice] = {}  # of watched networks; of others only while nothing changes
        self._subscriptions: Subscriptions[NetworkSlice, frozenset[str]] = Subscriptions()
        cache.machines.on_change(self._machine_changed)
        cache.routers.on_change(self._router_changed)

    def watch(self, networks: Collection[str]) -> AbstractAsyncContextManager[AsyncIterator[Change[NetworkSlice]]]:
        """Yields the slices of these networks, and every change of them, until the context is left."""

        def initial() -> list[Change[NetworkSlice]]:
            keys = sorted(self._table.keys(networks))
            known = [Change(ChangeType.ADDED, found) for key in keys if (found := self._derived(key)) is not None]
            return [*known, Change(ChangeType.SYNCED, None)]

        return self._subscriptions.subscribed(initial, frozenset(networks))

    def end(self) -> None:
        """Ends all watches after the changes so far."""
        self._subscriptions.end()

    def _machine_changed(self, before: VirtualMachine | None, after: VirtualMachine | None) -> None:
        self._update(self._table.machine_changed(before, after))

    def _router_changed(self, name: str, addresses: tuple[str, ...] | None) -> None:
        self._update(self._table.router_changed(name, addresses))

    def _update(self, keys: Iterable[SliceKey]) -> None:
        watched = {network for subscription in self._subscriptions for network in subscription.selection}
        for key in sorted(keys):
            before = self._slices.pop(key, None)
            after = self._derived(key) if key.network_uuid in watched else None
            for subscription in self._subscriptions:
                if key.network_uuid in subscription.selection:
                    subscription.report(before, after)

    def _derived(self, key: SliceKey) -> NetworkSlice | None:
        if key not in self._slices and (found := self._table.slice(key)) is not None:
            self._slices[key] = found
        return self._slices.get(key)
