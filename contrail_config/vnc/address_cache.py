"""Cache of our instance-ips, and the pools of free addresses that follow from them."""

import asyncio
import heapq
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import msgspec

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.addressing.pool import AddressPool
from contrail_config.objects import Subnet, VirtualNetwork
from contrail_config.vnc.mapping.addresses import AddressRecord
from contrail_config.vnc.mapping.subnets import Ranges, reserved_addresses
from contrail_config.vnc.own_writes import OwnWrites


class _Pools(NamedTuple):
    """Pools of a network by family, and the subnets from which they were built."""

    subnets: tuple[Subnet, ...]
    by_family: dict[int, AddressPool]


class AddressCache:
    """Records by uuid. Pools are built on first use, and then follow each change.

    `earlier_hold` is set when a hold ends earlier than all others.
    """

    def __init__(self) -> None:
        self._records: dict[str, AddressRecord] = {}
        self._by_owner: dict[str, dict[str, AddressRecord]] = {}
        self._by_network: dict[str, dict[str, AddressRecord]] = {}
        self._own_writes: OwnWrites[AddressRecord] = OwnWrites()
        self._pools: dict[str, _Pools] = {}  # by network, or by the IPAM that several networks share
        self._ipams: dict[str, str] = {}  # flat-subnet IPAMs by network
        self._ranges: dict[str, Ranges] = {}  # allocation pools, by network or flat-subnet IPAM
        self._hold_ends: list[tuple[float, str]] = []  # heap of ends and uuids, with those that have changed since
        self.earlier_hold = asyncio.Event()

    def __iter__(self) -> Iterator[AddressRecord]:
        return iter(list(self._records.values()))

    def of_owner(self, owner: str) -> list[AddressRecord]:
        """Returns the allocated and held addresses of an interface."""
        return list(self._by_owner.get(owner, {}).values())

    def of_network(self, network_uuid: str) -> list[AddressRecord]:
        """Returns the allocated and held addresses of a network."""
        return list(self._by_network.get(network_uuid, {}).values())

    def next_hold_end(self) -> float | None:
        """Returns when the earliest hold ends, in seconds since the epoch; None if no address is held."""
        while self._hold_ends:
            ends, uuid = self._hold_ends[0]
            record = self._records.get(uuid)
            if record is not None and record.held_until == ends:
                return ends
            heapq.heappop(self._hold_ends)
        return None

    def pool(self, network: VirtualNetwork, *, family: int) -> AddressPool:
        """Returns the pool of a network and family. Raises ValueError for malformed subnets."""
        key = self._pool_key(network.uuid)
        pools = self._pools.get(key)
        if pools is None or pools.subnets != network.subnets:
            pools = self._pools[key] = self._build(network)
        return pools.by_family[family]

    def forget_pool(self, network: VirtualNetwork) -> None:
        """Has the pools of a network built again, without what only they know: addresses of others."""
        self._pools.pop(self._pool_key(network.uuid), None)

    def set_flat_ipam(self, network_uuid: str, ipam: str | None) -> None:
        """Notes the flat-subnet IPAM from which a network has its addresses, which others may share; None: it has none.

        The server gives an address of such an IPAM once, whichever of its networks it is in.
        """
        if self._ipams.get(network_uuid) == ipam:
            return
        self._pools.pop(self._pool_key(network_uuid), None)
        if ipam is None:
            del self._ipams[network_uuid]
        else:
            self._ipams[network_uuid] = ipam
        self._pools.pop(self._pool_key(network_uuid), None)  # built again, with the addresses of all its networks

    def set_ranges(self, uuid: str, ranges: Ranges) -> None:
        """Notes the allocation pools of a network or of a flat-subnet IPAM."""
        if self._ranges.get(uuid, {}) != ranges:
            self._pools.pop(uuid, None)
        self._ranges[uuid] = ranges

    def unread_ipams(self) -> set[str]:
        """Returns the flat-subnet IPAMs whose allocation pools nobody noted yet."""
        return set(self._ipams.values()) - self._ranges.keys()

    def share_pool(self, one: str, other: str) -> bool:
        """Whether an address of one network is nobody else's in the other one, too."""
        return self._pool_key(one) == self._pool_key(other)

    def wrote(self, uuid: str, current: AddressRecord | None) -> None:
        """Applies a write of this process; None is a deletion."""
        self._own_writes.wrote(uuid, self._records.get(uuid), current)
        self._apply(uuid, current)

    def saw(self, uuid: str, current: AddressRecord | None) -> None:
        """Applies an event of the server, unless an own write has replaced what it shows."""
        if not self._own_writes.is_outdated(uuid, current):
            self._apply(uuid, current)

    def listed(self, found: Mapping[str, AddressRecord], *, newer: Collection[str] = ()) -> None:
        """Applies a list of all records, but those that are `newer` in the cache.

        It may be older than what was written since `reopened`.
        """
        for uuid in {*self._records, *found}.difference(newer):
            self.saw(uuid, found.get(uuid))

    def reopened(self) -> None:
        """Notes that a list is requested: it will show all writes so far."""
        self._own_writes.forget()

    def _apply(self, uuid: str, current: AddressRecord | None) -> None:
        before = self._records.pop(uuid, None)
        if before is not None:
            self._by_owner[before.owner].pop(uuid)
            if not self._by_owner[before.owner]:
                del self._by_owner[before.owner]
            self._by_network[before.network_uuid].pop(uuid)
        if current is not None:
            self._records[uuid] = current
            self._by_owner.setdefault(current.owner, {})[uuid] = current
            self._by_network.setdefault(current.network_uuid, {})[uuid] = current
            self._note_hold(current, before)
        if before is not None and (current is None or current.address != before.address):
            self._mark(before, free=True)
        if current is not None and current != before:
            self._mark(current)

    def _note_hold(self, current: AddressRecord, before: AddressRecord | None) -> None:
        if current.held_until is None or (before is not None and before.held_until == current.held_until):
            return
        heapq.heappush(self._hold_ends, (current.held_until, current.uuid))
        if self._hold_ends[0] == (current.held_until, current.uuid):
            self.earlier_hold.set()

    def _mark(self, record: AddressRecord, *, free: bool = False) -> None:
        pools = self._pools.get(self._pool_key(record.network_uuid))
        if pools is None:
            return
        pool, address = pools.by_family[record.family], parse_address(record.address, family=record.family)
        if free:
            pool.mark_free(address)
        elif record.held_until is not None:
            pool.mark_held(address)
        else:
            pool.mark_allocated(address)

    def _pool_key(self, network_uuid: str) -> str:
        return self._ipams.get(network_uuid, network_uuid)

    def _of_pool(self, network_uuid: str) -> Iterator[AddressRecord]:
        """Yields the addresses of a network and of those that share its pool."""
        key = self._pool_key(network_uuid)
        for uuid in list(self._by_network):
            if self._pool_key(uuid) == key:
                yield from self.of_network(uuid)

    def _build(self, network: VirtualNetwork) -> _Pools:
        subnets = [_without_reserved(subnet) for subnet in network.subnets]
        ranges = self._ranges.get(self._pool_key(network.uuid), {})
        by_family = {family: AddressPool(subnets, family=family, selected=ranges) for family in (4, 6)}
        pools = _Pools(network.subnets, by_family)
        for record in self._of_pool(network.uuid):
            pool, address = pools.by_family[record.family], parse_address(record.address, family=record.family)
            pool.mark_allocated(address)
            if record.held_until is not None:
                pool.mark_held(address)
        return pools


def _without_reserved(subnet: Subnet) -> Subnet:
    """Excludes the last address of an IPv6 subnet too, which this server never gives."""
    if family_of(subnet.cidr) == 4:
        return subnet
    _, last = reserved_addresses(subnet)
    return msgspec.structs.replace(subnet, excluded=(*subnet.excluded, last))
