"""Table of virtual networks. Runs in the worker thread."""

import sqlite3
from collections.abc import Iterable

import msgspec

from contrail_config.addressing.notation import parse_address
from contrail_config.addressing.pool import AddressPool
from contrail_config.embedded.rows import Row, RowChange, Table, decode_network, encode_over, json_list
from contrail_config.errors import ConflictError, InUseError, NotFoundError, StoreError
from contrail_config.objects import VirtualNetwork

_DELETE_UNUSED = """
    DELETE FROM networks WHERE uuid IN (SELECT value FROM json_each(:uuids)) AND (retired OR NOT :retired_only)
    AND NOT EXISTS (SELECT 1 FROM addresses WHERE network = networks.uuid AND held_until IS NULL)
    RETURNING uuid, body
"""

_LOWEST_FREE_VNI = """
    SELECT min(vni) FROM (SELECT 1 AS vni UNION ALL SELECT vni + 1 FROM networks)
    WHERE vni NOT IN (SELECT vni FROM networks)
"""

_UPSERT = """
    INSERT INTO networks (uuid, name, vni, retired, body) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (uuid) DO UPDATE SET name = excluded.name, retired = excluded.retired, body = excluded.body
"""


class VirtualNetworkTable:
    """Networks by uuid; fq_name and vni are unique too. Appends each change to `changes`."""

    def __init__(self, db: sqlite3.Connection, changes: list[RowChange]) -> None:
        self._db = db
        self._changes = changes
        self._cache: dict[str, VirtualNetwork] = {}

    def all(self) -> list[VirtualNetwork]:
        """Returns all networks, sorted by name."""
        return [decode_network(body) for (body,) in self._db.execute("SELECT body FROM networks ORDER BY name")]

    def get(self, uuid: str) -> VirtualNetwork:
        """Returns the network of this uuid. Raises NotFoundError."""
        network = self._cache.get(uuid) or self._find(uuid)
        if network is None:
            raise NotFoundError(f"network {uuid}: not found")
        self._cache[uuid] = network
        return network

    def put(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network and returns it with its current, requested or lowest free vni.

        Raises ConflictError if another network has the fq_name or the vni, if an allocated address would be in no
        subnet or equal a gateway, and StoreError if a subnet is malformed or overlaps another one.
        """
        row = self._find_row(network.uuid)
        old = None if row is None else decode_network(row.body)
        self._check_name(network, old)
        if old is None or old.subnets != network.subnets:
            self._check_subnets(network)
        # An existing network keeps its vni, whatever is requested.
        new = msgspec.structs.replace(network, vni=old.vni if old else self._assign_vni(network))
        if new != old:
            self._write(row, new)
        return new

    def delete(self, uuid: str) -> None:
        """Deletes the network. Idempotent. Raises InUseError while an address is allocated."""
        network = self._find(uuid)
        if network is None:
            return
        if not self._delete_unused([uuid], retired_only=False):
            raise InUseError(f"network {network.name}: still in use: interfaces have addresses in it")

    def delete_retired(self, uuids: Iterable[str]) -> list[str]:
        """Deletes those of the networks that are retired and unused, and returns their uuids."""
        return self._delete_unused(uuids, retired_only=True)

    def page(self, after: str, limit: int) -> list[tuple[str, bytes]]:
        """Returns uuid and encoded object of at most `limit` networks after a uuid, sorted by uuid."""
        rows = self._db.execute("SELECT uuid, body FROM networks WHERE uuid > ? ORDER BY uuid LIMIT ?", (after, limit))
        return rows.fetchall()

    def clear_cache(self) -> None:
        """Drops the networks in memory, which are read again on demand."""
        self._cache.clear()

    def _delete_unused(self, uuids: Iterable[str], *, retired_only: bool) -> list[str]:
        chosen = {"uuids": json_list(uuids), "retired_only": retired_only}
        rows = self._db.execute(_DELETE_UNUSED, chosen).fetchall()
        for uuid, body in rows:
            self._cache.pop(uuid, None)
            self._changes.append(RowChange(Table.NETWORKS, uuid, old=Row(body), new=None))
        return [uuid for uuid, _ in rows]

    def _find(self, uuid: str) -> VirtualNetwork | None:
        row = self._find_row(uuid)
        return None if row is None else decode_network(row.body)

    def _find_row(self, uuid: str) -> Row | None:
        row = self._db.execute("SELECT body FROM networks WHERE uuid = ?", (uuid,)).fetchone()
        return None if row is None else Row(*row)

    def _write(self, old: Row | None, new: VirtualNetwork) -> None:
        body = encode_over(new, old)
        self._db.execute(_UPSERT, (new.uuid, new.name, new.vni, new.retired, body))
        self._cache.pop(new.uuid, None)
        self._changes.append(RowChange(Table.NETWORKS, new.uuid, old=old, new=Row(body)))

    def _check_name(self, network: VirtualNetwork, old: VirtualNetwork | None) -> None:
        if old is not None and old.fq_name != network.fq_name:
            raise ConflictError(f"network {network.name}: already exists as {old.name}, and cannot be renamed")
        row = self._db.execute(
            "SELECT uuid FROM networks WHERE name = ? AND uuid != ?", (network.name, network.uuid)
        ).fetchone()
        if row is not None:
            raise ConflictError(f"network {network.name}: already exists with uuid {row[0]}")

    def _assign_vni(self, network: VirtualNetwork) -> int:
        if network.vni == 0:
            lowest: int = self._db.execute(_LOWEST_FREE_VNI).fetchone()[0]
            return lowest
        row = self._db.execute("SELECT name FROM networks WHERE vni = ?", (network.vni,)).fetchone()
        if row is not None:
            raise ConflictError(f"network {network.name}: vni {network.vni} is already used by network {row[0]}")
        return network.vni

    def _check_subnets(self, network: VirtualNetwork) -> None:
        try:
            pools = {family: AddressPool(network.subnets, family=family) for family in (4, 6)}
        except ValueError as error:
            raise StoreError(f"network {network.name}: invalid subnets: {error}") from error
        allocated = self._db.execute(
            "SELECT family, address FROM addresses WHERE network = ? AND held_until IS NULL", (network.uuid,)
        )
        for family, address in allocated:
            _check_allocated_address(network, pools[family], address, family=family)


def _check_allocated_address(network: VirtualNetwork, pool: AddressPool, address: str, *, family: int) -> None:
    """Raises ConflictError if an allocated address would be in no subnet, or equal the gateway of its subnet."""
    try:
        bounds = pool.bounds(parse_address(address, family=family))
    except ValueError as error:
        problem = f"cannot remove the subnet of {address}: the address is allocated"
        raise ConflictError(f"network {network.name}: {problem}") from error
    if bounds.gateway == address:
        raise ConflictError(f"network {network.name}: gateway {address} is already allocated to an interface")
