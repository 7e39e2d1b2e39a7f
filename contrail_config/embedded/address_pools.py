"""The address pools of the networks, in memory, read from the rows of `addresses` when a network is first asked for.

Runs in the worker's thread.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from contrail_config.addressing.notation import parse_address
from contrail_config.addressing.pool import AddressPool
from contrail_config.objects import Subnet, VirtualNetwork


class AddressKey(NamedTuple):
    """An address in the whole of the store."""

    network_uuid: str
    family: int
    address: str


class _NetworkPools(NamedTuple):
    """The pools of a network, by family, and the subnets that they were made of."""

    subnets: tuple[Subnet, ...]
    of_family: dict[int, AddressPool]


class AddressPools:
    """Which addresses are taken and held, as the rows say; what was not read yet need not be told of changes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._read: dict[str, _NetworkPools] = {}

    def of(self, network: VirtualNetwork, *, family: int) -> AddressPool:
        """The pool of a network and family."""
        pools = self._read.get(network.uuid)
        if pools is None or pools.subnets != network.subnets:
            pools = self._read[network.uuid] = self._read_pools(network)
        return pools.of_family[family]

    def hold(self, places: Iterable[AddressKey]) -> None:
        """Marks addresses as held back."""
        for network_uuid, family, address in places:
            if pools := self._read.get(network_uuid):
                pools.of_family[family].hold(parse_address(address, family=family))

    def free(self, places: Iterable[AddressKey]) -> None:
        """Marks addresses as free."""
        for network_uuid, family, address in places:
            if pools := self._read.get(network_uuid):
                pools.of_family[family].free(parse_address(address, family=family))

    def forget(self, network_uuid: str) -> None:
        """Drops the pools of a network."""
        self._read.pop(network_uuid, None)

    def forget_all(self) -> None:
        """Drops all pools."""
        self._read.clear()

    def _read_pools(self, network: VirtualNetwork) -> _NetworkPools:
        """The pools as the rows are; the last row is the address that was given last."""
        of_family = {family: AddressPool(network.subnets, family=family) for family in (4, 6)}
        rows = self._db.execute(
            "SELECT family, address, held_until FROM addresses WHERE network = ? ORDER BY id", (network.uuid,)
        )
        for family, text, held_until in rows:
            address = parse_address(text, family=family)
            of_family[family].take(address)
            if held_until is not None:
                of_family[family].hold(address)
        return _NetworkPools(network.subnets, of_family)
