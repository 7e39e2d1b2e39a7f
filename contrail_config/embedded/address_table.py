"""Who has which address. Runs in the worker's thread.

A UNIQUE constraint keeps each address single; the pools in memory only make the choice cheap.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from contrail_config.addressing.notation import family_of, format_address, parse_address
from contrail_config.addressing.pool import AddressPool
from contrail_config.embedded.address_pools import AddressKey, AddressPools
from contrail_config.embedded.rows import json_list
from contrail_config.embedded.virtual_network_table import VirtualNetworkTable
from contrail_config.errors import AddressUnavailableError, ExhaustedError
from contrail_config.objects import InterfaceAddress, VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, AddressRequest

_OWNED = """
    SELECT owner, network, family, address FROM addresses
    WHERE owner IN (SELECT value FROM json_each(?)) AND held_until IS NULL
"""

_GIVE = """
    INSERT INTO addresses (network, family, address, owner)
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
        json_extract(value, '$[3]') FROM json_each(?)
"""

_RELEASE = """
    UPDATE addresses SET held_until = min(ifnull(held_until, :until), :until)
    WHERE owner IN (SELECT value FROM json_each(:owners)) RETURNING network, family, address
"""

_SHORTEN = """
    UPDATE addresses SET held_until = min(held_until, :until)
    WHERE owner IN (SELECT value FROM json_each(:owners)) AND held_until IS NOT NULL
"""

_HELD = """
    SELECT owner, network FROM addresses
    WHERE held_until > ? AND owner NOT IN (SELECT owner FROM addresses WHERE held_until IS NULL)
"""

_EARLIEST_HOLD = "SELECT min(held_until) FROM addresses WHERE network = ? AND family = ? AND held_until IS NOT NULL"


class _Grant(NamedTuple):
    """An address that an owner has from now on, and the one that it had until now, if any."""

    request: AddressRequest
    network: VirtualNetwork
    pool: AddressPool
    address: int
    previous: int | None

    @property
    def text(self) -> str:
        return format_address(self.address, family=self.request.family)

    def answer(self) -> InterfaceAddress:
        bounds = self.pool.bounds(self.address)
        return InterfaceAddress(
            address=self.text,
            prefix_length=bounds.prefix_length,
            gateway=bounds.gateway,
            dns=tuple(server for server in self.network.dns if family_of(server) == self.request.family),
        )


class AddressTable:
    """Gives and frees addresses. `clock` tells seconds since the epoch, since holds outlive the process."""

    def __init__(
        self, db: sqlite3.Connection, networks: VirtualNetworkTable, pools: AddressPools, *, clock: Callable[[], float]
    ) -> None:
        self._db = db
        self._networks = networks
        self._pools = pools
        self._clock = clock

    def allocate(self, requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
        """Gives an address for each request: all are chosen before the first is written.

        Raises NotFoundError, AddressUnavailableError or ExhaustedError.
        """
        owned = self._owned_by({request.owner for request in requests})
        grants = []
        with ExitStack() as undo:
            for request in requests:
                grant = self._grant(request, owned)
                if grant.address != grant.previous:
                    undo.callback(grant.pool.free, grant.address)
                grants.append(grant)
            undo.pop_all()
        self._write([grant for grant in grants if grant.address != grant.previous])
        return [grant.answer() for grant in grants]

    def release(self, owners: Sequence[str], *, hold: float) -> None:
        """Frees the owners' addresses, held back for `hold` seconds; retired networks go with their last one."""
        parameters = {"until": self._clock() + hold, "owners": json_list(owners)}
        freed = [AddressKey(*row) for row in self._db.execute(_RELEASE, parameters).fetchall()]
        self._pools.hold(freed)
        for uuid in self._networks.delete_retired({place.network_uuid for place in freed}):
            self._pools.forget(uuid)

    def shorten_holds(self, owners: Sequence[str], *, hold: float) -> None:
        """What the owners had is held back for `hold` seconds, or less if that was said before."""
        self._db.execute(_SHORTEN, {"until": self._clock() + hold, "owners": json_list(owners)})

    def owners(self) -> set[str]:
        """Uuids of all interfaces that have addresses now."""
        return {owner for (owner,) in self._db.execute("SELECT DISTINCT owner FROM addresses WHERE held_until IS NULL")}

    def held_owners(self) -> dict[str, str]:
        """Interfaces that have no address any more, but had one that is still held back, with their networks."""
        return dict(self._db.execute(_HELD, (self._clock(),)).fetchall())

    def end_holds(self) -> None:
        """Frees the addresses whose hold is over."""
        over = self._db.execute(
            "DELETE FROM addresses WHERE held_until <= ? RETURNING network, family, address", (self._clock(),)
        )
        self._pools.free([AddressKey(*row) for row in over.fetchall()])

    def _grant(self, request: AddressRequest, owned: dict[tuple[str, str, int], int]) -> _Grant:
        """Chooses an address and marks it as taken, in the pool and in `owned`."""
        network = self._networks.get(request.network_uuid)
        pool = self._pools.of(network, family=request.family)
        key = (request.owner, request.network_uuid, request.family)
        previous = owned.get(key)
        if request.address is not None:
            address = self._wished(request, request.address, network, pool, previous=previous)
        else:
            address = self._next(request, network, pool) if previous is None else previous
        if address != previous:
            pool.take(address)
        owned[key] = address
        return _Grant(request, network, pool, address, previous)

    def _next(self, request: AddressRequest, network: VirtualNetwork, pool: AddressPool) -> int:
        address = pool.choose()
        if address is None:
            raise ExhaustedError(network.name, request.family, next_free_in=self._next_free_in(request))
        return address

    def _wished(
        self,
        request: AddressRequest,
        wanted: str,
        network: VirtualNetwork,
        pool: AddressPool,
        *,
        previous: int | None,
    ) -> int:
        try:
            address = parse_address(wanted, family=request.family)
        except ValueError as error:
            reason = f"it is no IPv{request.family} address"
            raise AddressUnavailableError(wanted, network.name, reason) from error
        refusal = None if address == previous else pool.refusal(address)
        if refusal is not None:
            raise AddressUnavailableError(wanted, network.name, refusal, free_in=self._free_in(request, address))
        return address

    def _free_in(self, request: AddressRequest, address: int) -> float | None:
        """Seconds until the hold of an address is over; None if it is not held."""
        place = (request.network_uuid, format_address(address, family=request.family))
        row = self._db.execute("SELECT held_until FROM addresses WHERE network = ? AND address = ?", place).fetchone()
        return None if row is None or row[0] is None else self._seconds_until(row[0])

    def _next_free_in(self, request: AddressRequest) -> float | None:
        """Seconds until the earliest hold in the network and family is over; None if nothing is held."""
        (earliest,) = self._db.execute(_EARLIEST_HOLD, (request.network_uuid, request.family)).fetchone()
        return None if earliest is None else self._seconds_until(earliest)

    def _seconds_until(self, moment: float) -> float:
        return max(0.0, moment - self._clock())

    def _owned_by(self, owners: Iterable[str]) -> dict[tuple[str, str, int], int]:
        """What the owners have now, by owner, network and family."""
        rows = self._db.execute(_OWNED, (json_list(owners),))
        return {
            (owner, network, family): parse_address(address, family=family) for owner, network, family, address in rows
        }

    def _write(self, grants: Sequence[_Grant]) -> None:
        given = [(each.network.uuid, each.request.family, each.text, each.request.owner) for each in grants]
        if given:
            self._db.execute(_GIVE, (json_list(given),))
        for grant in grants:
            if grant.previous is not None:
                self._hold_back(grant.request, grant.previous)

    def _hold_back(self, request: AddressRequest, address: int) -> None:
        place = AddressKey(request.network_uuid, request.family, format_address(address, family=request.family))
        self._db.execute(
            "UPDATE addresses SET held_until = ? WHERE network = ? AND family = ? AND address = ?",
            (self._clock() + DEFAULT_HOLD, *place),
        )
        self._pools.hold([place])
