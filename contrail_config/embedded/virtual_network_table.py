"""The table of virtual networks. Runs in the worker's thread."""

import sqlite3
from collections.abc import Iterable

import msgspec

from contrail_config.addressing.notation import parse_address
from contrail_config.addressing.pool import AddressPool
from contrail_config.embedded.rows import Row, RowChange, Table, decode_network, encode, json_list
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
    """Networks by uuid; fq_name and vni are unique too. What it changes it appends to `changes`."""

    def __init__(self, db: sqlite3.Connection, changes: list[RowChange]) -> None:
        self._db = db
        self._changes = changes
        self._known: dict[str, VirtualNetwork] = {}

    def all(self) -> list[VirtualNetwork]:
        """All networks, by name."""
        return [decode_network(body) for (body,) in self._db.execute("SELECT body FROM networks ORDER BY name")]

    def get(self, uuid: str) -> VirtualNetwork:
        """The network of this uuid. Raises NotFoundError."""
        network = self._known.get(uuid) or self._find(uuid)
        if network is None:
            raise NotFoundError(f"there is no network {uuid}")
        self._known[uuid] = network
        return network

    def put(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network and returns it with its vni: the one it had, or asks for, or the lowest free.

        Raises ConflictError if another network has the fq_name or the vni, or if given addresses would lose their
        subnet or meet their gateway, and StoreError if a subnet is malformed or overlaps another one.
        """
        old = self._find(network.uuid)
        self._refuse_name_of_another(network)
        if old is None or old.subnets != network.subnets:
            self._check_subnets(network)
        new = msgspec.structs.replace(network, vni=old.vni if old else self._new_vni(network))
        if new != old:
            self._write(old, new)
        return new

    def delete(self, uuid: str) -> None:
        """Deletes the network, if it is there. Raises InUseError while an address is given."""
        network = self._find(uuid)
        if network is None:
            return
        if not self._delete_unused([uuid], retired_only=False):
            raise InUseError(f"network {network.name} cannot go: interfaces still have addresses in it")

    def delete_retired(self, uuids: Iterable[str]) -> list[str]:
        """Deletes those of the networks that are retired and have no interface any more; returns which."""
        return self._delete_unused(uuids, retired_only=True)

    def page(self, after: str, limit: int) -> list[tuple[str, bytes]]:
        """Uuid and encoded object of at most `limit` networks, in the order of uuids, behind that one."""
        rows = self._db.execute("SELECT uuid, body FROM networks WHERE uuid > ? ORDER BY uuid LIMIT ?", (after, limit))
        return rows.fetchall()

    def forget(self) -> None:
        """Drops what is kept in memory: it is read again when it is needed."""
        self._known.clear()

    def _delete_unused(self, uuids: Iterable[str], *, retired_only: bool) -> list[str]:
        chosen = {"uuids": json_list(uuids), "retired_only": retired_only}
        rows = self._db.execute(_DELETE_UNUSED, chosen).fetchall()
        for uuid, body in rows:
            self._known.pop(uuid, None)
            self._changes.append(RowChange(Table.NETWORKS, uuid, old=Row(body), new=None))
        return [uuid for uuid, _ in rows]

    def _find(self, uuid: str) -> VirtualNetwork | None:
        row = self._db.execute("SELECT body FROM networks WHERE uuid = ?", (uuid,)).fetchone()
        return None if row is None else decode_network(row[0])

    def _write(self, old: VirtualNetwork | None, new: VirtualNetwork) -> None:
        body = encode(new)
        self._db.execute(_UPSERT, (new.uuid, new.name, new.vni, new.retired, body))
        self._known.pop(new.uuid, None)
        before = None if old is None else Row(encode(old))
        self._changes.append(RowChange(Table.NETWORKS, new.uuid, old=before, new=Row(body)))

    def _refuse_name_of_another(self, network: VirtualNetwork) -> None:
        row = self._db.execute(
            "SELECT uuid FROM networks WHERE name = ? AND uuid != ?", (network.name, network.uuid)
        ).fetchone()
        if row is not None:
            raise ConflictError(f"network {network.name} is there already, with uuid {row[0]}")

    def _new_vni(self, network: VirtualNetwork) -> int:
        if network.vni == 0:
            lowest: int = self._db.execute(_LOWEST_FREE_VNI).fetchone()[0]
            return lowest
        row = self._db.execute("SELECT name FROM networks WHERE vni = ?", (network.vni,)).fetchone()
        if row is not None:
            raise ConflictError(f"network {network.name} cannot have vni {network.vni}: network {row[0]} has it")
        return network.vni

    def _check_subnets(self, network: VirtualNetwork) -> None:
        try:
            pools = {family: AddressPool(network.subnets, family=family) for family in (4, 6)}
        except ValueError as error:
            raise StoreError(f"network {network.name} cannot be kept: {error}") from error
        given = self._db.execute(
            "SELECT family, address FROM addresses WHERE network = ? AND held_until IS NULL", (network.uuid,)
        )
        for family, address in given:
            _refuse_stranding(network, pools[family], address, family=family)


def _refuse_stranding(network: VirtualNetwork, pool: AddressPool, address: str, *, family: int) -> None:
    """Raises ConflictError if a given address would have no subnet, or be its gateway."""
    try:
        bounds = pool.bounds(parse_address(address, family=family))
    except ValueError as error:
        raise ConflictError(f"network {network.name} cannot lose the subnet of {address}: it is given") from error
    if bounds.gateway == address:
        raise ConflictError(f"network {network.name} cannot have the gateway {address}: it is given to an interface")
