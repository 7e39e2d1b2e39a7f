"""Stray addresses: those that an interface of a pod owns on the server, and that the pod does not have.

Such an address is left if the answer to its claim was lost, and the pod was then assigned to another network. An
interface of an isolated namespace owns its address in the pod network, too: that one is the pod's.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence

from contrail_config.vnc.cache import Cache
from contrail_config.vnc.keyed_locks import KeyedLocks
from contrail_config.vnc.mapping.addresses import AddressRecord

log = logging.getLogger(__name__)

Release = Callable[[Sequence[AddressRecord]], Awaitable[None]]
"""Releases addresses. Raises StoreError."""


class StrayAddresses:
    """Releases them. `locks` are those of the writers, by owner."""

    def __init__(self, cache: Cache, locks: KeyedLocks, release: Release) -> None:
        self._cache = cache
        self._locks = locks
        self._release = release
        self._suspects: set[str] = set()

    @property
    def has_suspects(self) -> bool:
        """Whether the last round found some that the one before had not: they may be about to become a pod's."""
        return bool(self._suspects)

    async def release(self) -> None:
        """Releases those that the round before found too. Raises StoreError."""
        found = {record.uuid: record.owner for record in self._found()}
        again, self._suspects = self._suspects & found.keys(), found.keys() - self._suspects
        for uuid in sorted(again):
            async with self._locks.held([found[uuid]]):
                for record in [each for each in self._found() if each.uuid == uuid]:
                    log.warning("address %s: not that of its interface %s, releasing it", record.address, record.owner)
                    await self._release([record])

    def _found(self) -> Iterator[AddressRecord]:
        for machine in self._cache.machines:
            for interface in machine.interfaces:
                own = {address.address for address in interface.addresses}
                for record in self._cache.addresses.of_owner(interface.uuid):
                    if record.held_until is None and record.address not in own:
                        yield record
