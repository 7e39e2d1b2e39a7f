"""Table of virtual machines, each stored as a whole. Runs in the worker thread."""

import sqlite3

from contrail_config.embedded.address_table import AddressTable
from contrail_config.embedded.rows import Row, RowChange, Table, decode_virtual_machine, encode_over
from contrail_config.errors import ConflictError, NotFoundError
from contrail_config.objects import VirtualMachine

_UPSERT = """
    INSERT INTO machines (uuid, name, node, body) VALUES (?, ?, ?, ?)
    ON CONFLICT (uuid) DO UPDATE SET name = excluded.name, node = excluded.node, body = excluded.body
"""

_ALL = "SELECT body FROM machines ORDER BY name"
_OF_NODE = "SELECT body FROM machines WHERE node = :node ORDER BY name"
_BY_UUID_OR_NAME = "SELECT uuid, body, node FROM machines WHERE uuid = ? OR name = ?"
_PAGE = "SELECT uuid, body FROM machines WHERE uuid > :after ORDER BY uuid LIMIT :limit"
_PAGE_OF_NODE = "SELECT uuid, body FROM machines WHERE node = :node AND uuid > :after ORDER BY uuid LIMIT :limit"


class VirtualMachineTable:
    """Virtual machines by uuid; their names are unique too."""

    def __init__(self, db: sqlite3.Connection, changes: list[RowChange], addresses: AddressTable) -> None:
        self._db = db
        self._changes = changes
        self._addresses = addresses

    def all(self, *, node: str | None) -> list[VirtualMachine]:
        """Returns all virtual machines (of one node), sorted by name."""
        rows = self._db.execute(_ALL if node is None else _OF_NODE, {"node": node})
        return [decode_virtual_machine(body) for (body,) in rows]

    def get(self, uuid: str) -> VirtualMachine:
        """Returns the virtual machine of this uuid. Raises NotFoundError."""
        row = self._find(uuid)
        if row is None:
            raise NotFoundError(f"virtual machine {uuid}: not found")
        return decode_virtual_machine(row.body)

    def put(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the virtual machine. Raises ConflictError if another one has the name."""
        old = self._find_for(virtual_machine)
        new = Row(encode_over(virtual_machine, old), virtual_machine.node)
        if new != old:
            self._db.execute(_UPSERT, (virtual_machine.uuid, virtual_machine.name, virtual_machine.node, new.body))
            self._changes.append(RowChange(Table.VIRTUAL_MACHINES, virtual_machine.uuid, old=old, new=new))

    def delete(self, uuid: str, *, hold: float) -> None:
        """Deletes the virtual machine and releases the addresses of its interfaces. Idempotent."""
        old = self._find(uuid)
        if old is None:
            return
        self._db.execute("DELETE FROM machines WHERE uuid = ?", (uuid,))
        self._changes.append(RowChange(Table.VIRTUAL_MACHINES, uuid, old=old, new=None))
        interfaces = decode_virtual_machine(old.body).interfaces
        self._addresses.release([interface.uuid for interface in interfaces], hold=hold)

    def page(self, after: str, limit: int, *, node: str | None) -> list[tuple[str, bytes]]:
        """Returns uuid and encoded object of at most `limit` virtual machines after a uuid, sorted by uuid."""
        statement = _PAGE if node is None else _PAGE_OF_NODE
        return self._db.execute(statement, {"after": after, "node": node, "limit": limit}).fetchall()

    def _find(self, uuid: str) -> Row | None:
        row = self._db.execute("SELECT body, node FROM machines WHERE uuid = ?", (uuid,)).fetchone()
        return None if row is None else Row(*row)

    def _find_for(self, virtual_machine: VirtualMachine) -> Row | None:
        """Returns the row that the virtual machine replaces. Raises ConflictError if another one has its name."""
        rows = self._db.execute(_BY_UUID_OR_NAME, (virtual_machine.uuid, virtual_machine.name))
        found = {uuid: Row(body, node) for uuid, body, node in rows}
        old = found.pop(virtual_machine.uuid, None)
        if found:
            holder = next(iter(found))
            problem = f"virtual machine {virtual_machine.name}: already exists with uuid {holder}"
            raise ConflictError(problem, holder=holder)
        return old
