"""The table of virtual machines, each kept whole. Runs in the worker's thread."""

import sqlite3

from contrail_config.embedded.address_table import AddressTable
from contrail_config.embedded.rows import Row, RowChange, Table, decode_machine, encode
from contrail_config.errors import ConflictError, NotFoundError
from contrail_config.objects import VirtualMachine

_UPSERT = """
    INSERT INTO machines (uuid, name, node, body) VALUES (?, ?, ?, ?)
    ON CONFLICT (uuid) DO UPDATE SET name = excluded.name, node = excluded.node, body = excluded.body
"""

_ALL = "SELECT body FROM machines ORDER BY name"
_OF_NODE = "SELECT body FROM machines WHERE node = :node ORDER BY name"
_PAGE = "SELECT uuid, body FROM machines WHERE uuid > :after ORDER BY uuid LIMIT :limit"
_PAGE_OF_NODE = "SELECT uuid, body FROM machines WHERE node = :node AND uuid > :after ORDER BY uuid LIMIT :limit"


class VirtualMachineTable:
    """Machines by uuid; their names are unique too."""

    def __init__(self, db: sqlite3.Connection, changes: list[RowChange], addresses: AddressTable) -> None:
        self._db = db
        self._changes = changes
        self._addresses = addresses

    def all(self, *, node: str | None) -> list[VirtualMachine]:
        """All machines, of one node if it is given, by name."""
        rows = self._db.execute(_ALL if node is None else _OF_NODE, {"node": node})
        return [decode_machine(body) for (body,) in rows]

    def get(self, uuid: str) -> VirtualMachine:
        """The machine of this uuid. Raises NotFoundError."""
        row = self._find(uuid)
        if row is None:
            raise NotFoundError(f"there is no machine {uuid}")
        return decode_machine(row.body)

    def put(self, machine: VirtualMachine) -> None:
        """Creates or replaces the machine. Raises ConflictError if another machine has the name."""
        old = self._find_for(machine)
        new = Row(encode(machine), machine.node)
        if new != old:
            self._db.execute(_UPSERT, (machine.uuid, machine.name, machine.node, new.body))
            self._changes.append(RowChange(Table.MACHINES, machine.uuid, old=old, new=new))

    def delete(self, uuid: str, *, hold: float) -> None:
        """Deletes the machine, if it is there, and frees the addresses of its interfaces."""
        old = self._find(uuid)
        if old is None:
            return
        self._db.execute("DELETE FROM machines WHERE uuid = ?", (uuid,))
        self._changes.append(RowChange(Table.MACHINES, uuid, old=old, new=None))
        self._addresses.release([interface.uuid for interface in decode_machine(old.body).interfaces], hold=hold)

    def page(self, after: str, limit: int, *, node: str | None) -> list[tuple[str, bytes]]:
        """Uuid and encoded object of at most `limit` machines, in the order of uuids, behind that one."""
        statement = _PAGE if node is None else _PAGE_OF_NODE
        return self._db.execute(statement, {"after": after, "node": node, "limit": limit}).fetchall()

    def _find(self, uuid: str) -> Row | None:
        row = self._db.execute("SELECT body, node FROM machines WHERE uuid = ?", (uuid,)).fetchone()
        return None if row is None else Row(*row)

    def _find_for(self, machine: VirtualMachine) -> Row | None:
        """The row that the machine replaces. Raises ConflictError if another machine has its name."""
        rows = self._db.execute(
            "SELECT uuid, body, node FROM machines WHERE uuid = ? OR name = ?", (machine.uuid, machine.name)
        )
        found = {uuid: Row(body, node) for uuid, body, node in rows}
        old = found.pop(machine.uuid, None)
        if found:
            raise ConflictError(f"machine {machine.name} is there already, with uuid {next(iter(found))}")
        return old
