"""Table of allocated and held addresses. Runs in the worker thread.

A UNIQUE constraint enforces that an address has one owner; the pools in memory only make the selection fast.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

import msgspec

from contrail_config.addressing.notation import family_of, format_address, parse_address
from contrail_config.addressing.pool import AddressPool
from contrail_config.embedded.address_pools import AddressKey, AddressPools
from contrail_config.embedded.rows import json_list
from contrail_config.embedded.virtual_network_table import VirtualNetworkTable
from contrail_config.errors import AddressUnavailableError, ExhaustedError
from contrail_config.objects import InterfaceAddress, VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD, AddressPage, AddressRequest, StoredAddress

_SELECT_ALLOCATED = """
    SELECT owner, network, family, address FROM addresses
    WHERE owner IN (SELECT value FROM json_each(?)) AND held_until IS NULL
"""

# json_each passes all rows to one statement: each statement releases the interpreter lock, and may wait long for it.
_INSERT = """
    INSERT INTO addresses (network, family, address, owner)
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
        json_extract(value, '$[3]') FROM json_each(?)
"""

# min: releasing an address again never extends its hold.
_RELEASE = """
    UPDATE addresses SET held_until = min(ifnull(held_until, :until), :until)
    WHERE owner IN (SELECT value FROM json_each(:owners)) RETURNING network, family, address
"""

_SHORTEN_HOLDS = """
    UPDATE addresses SET held_until = min(held_until, :until)
    WHERE owner IN (SELECT value FROM json_each(:owners)) AND held_until IS NOT NULL
"""

_LIMIT_HOLDS = "UPDATE addresses SET held_until = :until WHERE held_until > :until"

_SELECT_HELD = """
    SELECT owner, network FROM addresses
    WHERE held_until > ? AND owner NOT IN (SELECT owner FROM addresses WHERE held_until IS NULL)
"""

# The order is that of the index of the UNIQUE constraint.
_SELECT_PAGE = """
    SELECT address, owner, held_until FROM addresses
    WHERE network = ? AND address > ? AND (held_until IS NULL OR held_until > ?) ORDER BY address LIMIT ?
"""

_ANY_ALLOCATED = "SELECT 1 FROM addresses WHERE network = ? AND held_until IS NULL LIMIT 1"

_EARLIEST_HOLD = "SELECT min(held_until) FROM addresses WHERE network = ? AND family = ? AND held_until IS NOT NULL"


class _Allocation(NamedTuple):
    """The address selected for a request, and the one that the owner had before, if any."""

    request: AddressRequest
    network: VirtualNetwork
    pool: AddressPool
    address: int
    previous: int | None

    @property
    def text(self) -> str:
        return format_address(self.address, family=self.request.family)

    def to_interface_address(self) -> InterfaceAddress:
        bounds = self.pool.bounds(self.address)
        return InterfaceAddress(
            address=self.text,
            prefix_length=bounds.prefix_length,
            gateway=bounds.gateway,
            dns=tuple(server for server in self.network.dns if family_of(server) == self.request.family),
        )


class AddressTable:
    """Allocates and releases addresses. `clock` returns seconds since the epoch, since holds outlive the process."""

    def __init__(
        self, db: sqlite3.Connection, networks: VirtualNetworkTable, pools: AddressPools, *, clock: Callable[[], float]
    ) -> None:
        self._db = db
        self._networks = networks
        self._pools = pools
        self._clock = clock

    def allocate(self, requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
        """Allocates one address for each request. Selects all of them before it writes the first.

        Raises NotFoundError, AddressUnavailableError or ExhaustedError.
        """
        owned = self._owned_by({request.owner for request in requests})
        allocations: list[_Allocation] = []
        reservations: list[_Allocation] = []
        with ExitStack() as undo:  # if one request fails, the pools are as before
            for request in requests:
                address = request.address
                if request.reserved_in is not None:
                    reservations.append(self._reserve(request, owned, undo))
                    address = reservations[-1].text
                allocations.append(self._take(msgspec.structs.replace(request, address=address), owned, undo))
            undo.pop_all()
        selected = (*reservations, *allocations)
        self._write([allocation for allocation in selected if allocation.address != allocation.previous])
        return [allocation.to_interface_address() for allocation in allocations]

    def release(self, owners: Sequence[str], *, hold: float) -> None:
        """Releases the owners' addresses, holds them for `hold` seconds and deletes retired networks left unused."""
        parameters = {"until": self._clock() + hold, "owners": json_list(owners)}
        released = [AddressKey(*row) for row in self._db.execute(_RELEASE, parameters).fetchall()]
        self._pools.mark_held(released)
        for uuid in self._networks.delete_retired({key.network_uuid for key in released}):
            self._pools.evict(uuid)

    def has_any(self, network_uuid: str) -> bool:
        """Returns whether an address of the network is allocated."""
        found = self._db.execute(_ANY_ALLOCATED, (network_uuid,)).fetchone()
        return found is not None

    def shorten_holds(self, owners: Sequence[str], *, hold: float) -> None:
        """Shortens the holds of addresses that the owners released to at most `hold` seconds from now."""
        self._db.execute(_SHORTEN_HOLDS, {"until": self._clock() + hold, "owners": json_list(owners)})

    def limit_holds(self) -> None:
        """Shortens all holds to the longest that there is: the clock may have been set back since they began."""
        with suppress(sqlite3.OperationalError):  # a full disk: such a hold lasts longer, but the store opens
            self._db.execute(_LIMIT_HOLDS, {"until": self._clock() + UNPLUGGED_HOLD})

    def owners(self) -> set[str]:
        """Returns the uuids of all interfaces that have addresses."""
        return {owner for (owner,) in self._db.execute("SELECT DISTINCT owner FROM addresses WHERE held_until IS NULL")}

    def held_owners(self) -> dict[str, str]:
        """Returns network uuid by interface uuid, for interfaces that have no address but still a held one."""
        return dict(self._db.execute(_SELECT_HELD, (self._clock(),)).fetchall())

    def page(self, network_uuid: str, *, limit: int, after: str) -> AddressPage:
        """Returns the allocated and held addresses of a network that follow a text, in the order of their texts."""
        found = self._db.execute(_SELECT_PAGE, (network_uuid, after, self._clock(), limit + 1))
        addresses = [StoredAddress(*row) for row in found]
        if len(addresses) <= limit:
            return AddressPage(addresses, None)
        return AddressPage(addresses[:limit], addresses[limit - 1].address)

    def expire_holds(self) -> None:
        """Frees the addresses whose hold has expired."""
        expired = self._db.execute(
            "DELETE FROM addresses WHERE held_until <= ? RETURNING network, family, address", (self._clock(),)
        )
        self._pools.mark_free([AddressKey(*row) for row in expired.fetchall()])

    def _reserve(self, request: AddressRequest, owned: dict[tuple[str, str, int], int], undo: ExitStack) -> _Allocation:
        reservation = msgspec.structs.replace(request, network_uuid=request.reserved_in, reserved_in=None)
        try:
            return self._take(reservation, owned, undo)
        except (AddressUnavailableError, ExhaustedError) as error:
            raise error.of_network(self._networks.get(request.network_uuid).name) from error

    def _take(self, request: AddressRequest, owned: dict[tuple[str, str, int], int], undo: ExitStack) -> _Allocation:
        """As `_select`, undone with `undo`."""
        allocation = self._select(request, owned)
        if allocation.address != allocation.previous:
            undo.callback(allocation.pool.mark_free, allocation.address)
        return allocation

    def _select(self, request: AddressRequest, owned: dict[tuple[str, str, int], int]) -> _Allocation:
        """Selects an address and marks it as allocated in the pool and in `owned`."""
        network = self._networks.get(request.network_uuid)
        pool = self._pools.get(network, family=request.family)
        key = (request.owner, request.network_uuid, request.family)
        previous = owned.get(key)
        if request.address is not None:
            address = self._requested(request, request.address, network, pool, previous=previous)
        else:
            address = self._next(request, network, pool) if previous is None else previous
        if address != previous:
            pool.mark_allocated(address)
        owned[key] = address  # a second request of the owner in this call gets the same address
        return _Allocation(request, network, pool, address, previous)

    def _next(self, request: AddressRequest, network: VirtualNetwork, pool: AddressPool) -> int:
        address = pool.next_free()
        if address is None:
            raise ExhaustedError(network.name, request.family, next_free_in=self._next_free_in(request))
        return address

    def _requested(
        self,
        request: AddressRequest,
        requested: str,
        network: VirtualNetwork,
        pool: AddressPool,
        *,
        previous: int | None,
    ) -> int:
        try:
            address = parse_address(requested, family=request.family)
        except ValueError as error:
            problem = f"it is not an IPv{request.family} address"
            raise AddressUnavailableError(requested, network.name, problem) from error
        reason = None if address == previous else pool.unavailable_reason(address)
        if reason is not None:
            raise AddressUnavailableError(requested, network.name, reason, free_in=self._free_in(request, address))
        return address

    def _free_in(self, request: AddressRequest, address: int) -> float | None:
        """Returns the seconds until the hold of an address expires; None if it is not held."""
        key = (request.network_uuid, format_address(address, family=request.family))
        row = self._db.execute("SELECT held_until FROM addresses WHERE network = ? AND address = ?", key).fetchone()
        return None if row is None or row[0] is None else self._seconds_until(row[0])

    def _next_free_in(self, request: AddressRequest) -> float | None:
        """Returns the seconds until the earliest hold of the network and family expires; None if nothing is held."""
        (earliest,) = self._db.execute(_EARLIEST_HOLD, (request.network_uuid, request.family)).fetchone()
        return None if earliest is None else self._seconds_until(earliest)

    def _seconds_until(self, moment: float) -> float:
        return max(0.0, moment - self._clock())

    def _owned_by(self, owners: Iterable[str]) -> dict[tuple[str, str, int], int]:
        """Returns the addresses of the owners by owner, network and family."""
        rows = self._db.execute(_SELECT_ALLOCATED, (json_list(owners),))
        return {
            (owner, network, family): parse_address(address, family=family) for owner, network, family, address in rows
        }

    def _write(self, allocations: Sequence[_Allocation]) -> None:
        rows = [(each.network.uuid, each.request.family, each.text, each.request.owner) for each in allocations]
        if rows:
            self._db.execute(_INSERT, (json_list(rows),))
        for allocation in allocations:
            if allocation.previous is not None:
                self._hold(allocation.request, allocation.previous)

    def _hold(self, request: AddressRequest, address: int) -> None:
        key = AddressKey(request.network_uuid, request.family, format_address(address, family=request.family))
        self._db.execute(
            "UPDATE addresses SET held_until = ? WHERE network = ? AND family = ? AND address = ?",
            (self._clock() + DEFAULT_HOLD, *key),
        )
        self._pools.mark_held([key])
