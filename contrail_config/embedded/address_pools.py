"""In-memory address pools of the networks, loaded from the rows of `addresses` on first use.

Runs in the worker thread.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from contrail_config.addressing.notation import parse_address
from contrail_config.addressing.pool import AddressPool
from contrail_config.objects import Subnet, VirtualNetwork


class AddressKey(NamedTuple):
    """Identifies an address in the whole store."""

    network_uuid: str
    family: int
    address: str


class _NetworkPools(NamedTuple):
    """Pools of a network by family, and the subnets from which they were built."""

    subnets: tuple[Subnet, ...]
    by_family: dict[int, AddressPool]


class AddressPools:
    """Allocated and held addresses by network, as the rows say. Changes of pools that are not loaded are ignored."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._loaded: dict[str, _NetworkPools] = {}

    def get(self, network: VirtualNetwork, *, family: int) -> AddressPool:
        """Returns the pool of a network and family. Loads it again if the subnets have changed."""
        pools = self._loaded.get(network.uuid)
        if pools is None or pools.subnets != network.subnets:
            pools = self._loaded[network.uuid] = self._load(network)
        return pools.by_family[family]

    def mark_held(self, keys: Iterable[AddressKey]) -> None:
        """Marks addresses as held."""
        for network_uuid, family, address in keys:
            if pools := self._loaded.get(network_uuid):
                pools.by_family[family].mark_held(parse_address(address, family=family))

    def mark_free(self, keys: Iterable[AddressKey]) -> None:
        """Marks addresses as free."""
        for network_uuid, family, address in keys:
            if pools := self._loaded.get(network_uuid):
                pools.by_family[family].mark_free(parse_address(address, family=family))

    def evict(self, network_uuid: str) -> None:
        """Drops the pools of a network."""
        self._loaded.pop(network_uuid, None)

    def clear(self) -> None:
        """Drops all pools."""
        self._loaded.clear()

    def _load(self, network: VirtualNetwork) -> _NetworkPools:
        """Builds the pools from the rows. Rows are in the order of allocation, so the search starts after the last."""
        by_family = {family: AddressPool(network.subnets, family=family) for family in (4, 6)}
        rows = self._db.execute(
            "SELECT family, address, held_until FROM addresses WHERE network = ? ORDER BY id", (network.uuid,)
        )
        for family, text, held_until in rows:
            address = parse_address(text, family=family)
            by_family[family].mark_allocated(address)  # also for a held one: moves the start of the search
            if held_until is not None:
                by_family[family].mark_held(address)
        return _NetworkPools(network.subnets, by_family)
