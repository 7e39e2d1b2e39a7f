"""Table of the uids that a source assigned to objects without one. Runs in the worker thread."""

import sqlite3


class IdentityTable:
    """Uids by kind, namespace and name."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def all(self) -> dict[tuple[str, str, str], str]:
        """Returns (kind, namespace, name) to uid."""
        rows = self._db.execute("SELECT kind, namespace, name, uid FROM identities")
        return {(kind, namespace, name): uid for kind, namespace, name, uid in rows}

    def put(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Stores the uid; replaces an earlier one."""
        self._db.execute("INSERT OR REPLACE INTO identities VALUES (?, ?, ?, ?)", (kind, namespace, name, uid))

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Deletes the uid. Idempotent."""
        self._db.execute(
            "DELETE FROM identities WHERE kind = ? AND namespace = ? AND name = ?", (kind, namespace, name)
        )
