"""Releases and holds of addresses: a released instance-ip stays, unlinked, until its hold ends.

The server would give a freed address again at once.
"""

import asyncio
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from contrail_config.vnc.address_deletion import delete_address
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncNotFoundError
from contrail_config.vnc.mapping.addresses import KIND, AddressRecord, held_annotations
from contrail_config.vnc.store_errors import as_store_error

Clock = Callable[[], float]
"""Returns seconds since the epoch."""


MAX_PARALLEL: Final = 8
"""Ended holds that are freed at the same time: other requests wait less for a connection."""


class Holds:
    """Releases addresses of one cluster."""

    def __init__(self, client: VncClient, cache: Cache, cluster: str, clock: Clock) -> None:
        self._client = client
        self._cache = cache
        self._cluster = cluster
        self._clock = clock
        self._pace = asyncio.Semaphore(MAX_PARALLEL)

    async def release(self, owners: Iterable[str], *, hold: float) -> set[str]:
        """Releases the owners' addresses, and returns the networks that they were in."""
        records = [record for owner in owners for record in self._cache.addresses.of_owner(owner)]
        await self.hold(records, hold=hold)
        return {record.network_uuid for record in records}

    async def shorten(self, owners: Iterable[str], *, hold: float) -> None:
        """Shortens the holds of addresses that the owners released."""
        records = [record for owner in owners for record in self._cache.addresses.of_owner(owner)]
        await self.hold([record for record in records if record.held_until is not None], hold=hold)

    async def hold(self, records: Sequence[AddressRecord], *, hold: float) -> None:
        """Holds addresses for `hold` seconds; those that are held already never longer than before."""
        until = self._clock() + hold
        shorter = [record for record in records if record.held_until is None or until < record.held_until]
        await asyncio.gather(*(self._hold(record, until) for record in shorter))

    async def expire(self, networks: Collection[str] | None = None) -> set[str]:
        """Frees the addresses (of these networks) whose hold has ended, and returns the networks that they were in."""
        now, next_end = self._clock(), self._cache.addresses.next_hold_end()
        if next_end is None or next_end > now:
            return set()  # no address of perhaps many has to be looked at
        records = self._cache.addresses if networks is None else self._of_networks(networks)
        ended = [each for each in records if each.held_until is not None and each.held_until <= now]
        await asyncio.gather(*(self._free_paced(record) for record in ended))
        return {record.network_uuid for record in ended}

    def held(self) -> Collection[AddressRecord]:
        """Returns the addresses that are held now."""
        now = self._clock()
        return [each for each in self._cache.addresses if each.held_until is not None and each.held_until > now]

    def _of_networks(self, networks: Collection[str]) -> Iterator[AddressRecord]:
        return itertools.chain.from_iterable(map(self._cache.addresses.of_network, networks))

    async def _free_paced(self, record: AddressRecord) -> None:
        async with self._pace:
            await self._free(record)

    async def _hold(self, record: AddressRecord, until: float) -> None:
        if until <= self._clock():
            await self._free(record)
            return
        changes = {
            "virtual_machine_interface_refs": [],
            "annotations": held_annotations(record, until, self._cluster),
        }
        with as_store_error(f"address {record.address}"):
            try:
                await self._client.update(KIND, record.uuid, changes)
            except VncNotFoundError:  # it is gone, or its network
                await self._free(record)
                return
        self._cache.addresses.wrote(record.uuid, record._replace(held_until=until))

    async def _free(self, record: AddressRecord) -> None:
        with as_store_error(f"address {record.address}"):
            await delete_address(self._client, record)
        self._cache.addresses.wrote(record.uuid, None)
