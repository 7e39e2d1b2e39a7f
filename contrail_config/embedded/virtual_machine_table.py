"""Table of virtual machines, each stored as a whole. Runs in the worker thread."""

import sqlite3

from contrail_config.embedded.address_table import AddressTable
from contrail_config.embedded.rows import Row, RowChange, Table, decode_virtual_machine, encode_over
from contrail_config.errors import ConflictError, NotFoundError
from contrail_config.objects import VirtualMachine

_UPSERT = """
    INSERT INTO machines (uuid, name, node, pending, body) VALUES (:uuid, :name, :node, :pending, :body)
    ON CONFLICT (uuid) DO UPDATE
    SET name = excluded.name, node = excluded.node, pending = excluded.pending, body = excluded.body
"""

_ALL = "SELECT body FROM machines WHERE (:include_pending OR NOT pending) ORDER BY name"
_OF_NODE = "SELECT body FROM machines WHERE node = :node AND (:include_pending OR NOT pending) ORDER BY name"
_BY_UUID = "SELECT body, node, pending FROM machines WHERE uuid = ?"
_BY_UUID_OR_NAME = "SELECT uuid, body, node, pending FROM machines WHERE uuid = ? OR name = ?"
_PAGE = """
    SELECT uuid, body FROM machines
    WHERE uuid > :after AND (:include_pending OR NOT pending) ORDER BY uuid LIMIT :limit
"""
_PAGE_OF_NODE = """
    SELECT uuid, body FROM machines
    WHERE node = :node AND uuid > :after AND (:include_pending OR NOT pending) ORDER BY uuid LIMIT :limit
"""


class VirtualMachineTable:
    """Virtual machines by uuid; their names are unique too."""

    def __init__(self, db: sqlite3.Connection, changes: list[RowChange], addresses: AddressTable) -> None:
        self._db = db
        self._changes = changes
        self._addresses = addresses

    def all(self, *, node: str | None, include_pending: bool) -> list[VirtualMachine]:
        """Returns all virtual machines (of one node), sorted by name."""
        statement = _ALL if node is None else _OF_NODE
        rows = self._db.execute(statement, {"node": node, "include_pending": include_pending})
        return [decode_virtual_machine(body) for (body,) in rows]

    def get(self, uuid: str) -> VirtualMachine:
        """Returns the virtual machine of this uuid. Raises NotFoundError, also if it is pending."""
        row = self._find(uuid)
        if row is None or row.pending:
            raise NotFoundError(f"virtual machine {uuid}: not found")
        return decode_virtual_machine(row.body)

    def put(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the virtual machine.

        Raises ConflictError if another one has the name; a pending one is deleted instead.
        """
        found = self._find_for(virtual_machine)
        for uuid, row in found.items():
            if uuid != virtual_machine.uuid and not row.pending:
                problem = f"virtual machine {virtual_machine.name}: already exists with uuid {uuid}"
                raise ConflictError(problem, holder=uuid)
        self._replace(found, virtual_machine)

    def put_pending(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the pending virtual machine, unless one with interfaces has the uuid or the name."""
        found = self._find_for(virtual_machine)
        if all(row.pending for row in found.values()):
            self._replace(found, virtual_machine)

    def delete(self, uuid: str, *, hold: float) -> None:
        """Deletes the virtual machine and releases the addresses of its interfaces. Idempotent."""
        old = self._find(uuid)
        if old is None:
            return
        self._delete_row(uuid, old)
        interfaces = decode_virtual_machine(old.body).interfaces
        self._addresses.release([interface.uuid for interface in interfaces], hold=hold)

    def delete_pending(self, uuid: str) -> None:
        """Deletes the virtual machine if it is pending. Idempotent."""
        old = self._find(uuid)
        if old is not None and old.pending:
            self._delete_row(uuid, old)

    def page(self, after: str, limit: int, *, node: str | None, include_pending: bool) -> list[tuple[str, bytes]]:
        """Returns uuid and encoded object of at most `limit` virtual machines after a uuid, sorted by uuid."""
        statement = _PAGE if node is None else _PAGE_OF_NODE
        parameters = {"after": after, "node": node, "include_pending": include_pending, "limit": limit}
        return self._db.execute(statement, parameters).fetchall()

    def _find(self, uuid: str) -> Row | None:
        row = self._db.execute(_BY_UUID, (uuid,)).fetchone()
        return None if row is None else _row(*row)

    def _find_for(self, virtual_machine: VirtualMachine) -> dict[str, Row]:
        """Returns by uuid what has the uuid or the name of the virtual machine."""
        rows = self._db.execute(_BY_UUID_OR_NAME, (virtual_machine.uuid, virtual_machine.name))
        return {uuid: _row(*row) for uuid, *row in rows}

    def _replace(self, found: dict[str, Row], virtual_machine: VirtualMachine) -> None:
        """Writes the virtual machine in place of what was found for it."""
        old = found.pop(virtual_machine.uuid, None)
        for uuid, row in found.items():
            self._delete_row(uuid, row)
        new = Row(encode_over(virtual_machine, old), virtual_machine.node, virtual_machine.is_pending)
        if new != old:
            columns = {"uuid": virtual_machine.uuid, "name": virtual_machine.name, **new._asdict()}
            self._db.execute(_UPSERT, columns)
            self._changes.append(RowChange(Table.VIRTUAL_MACHINES, virtual_machine.uuid, old=old, new=new))

    def _delete_row(self, uuid: str, old: Row) -> None:
        self._db.execute("DELETE FROM machines WHERE uuid = ?", (uuid,))
        self._changes.append(RowChange(Table.VIRTUAL_MACHINES, uuid, old=old, new=None))


def _row(body: bytes, node: str, pending: int) -> Row:
    return Row(body, node, bool(pending))
