"""SQLite file of the store: locks, checks and opens it in write-ahead mode.

Write-ahead logging with `synchronous = NORMAL`: a commit is one write to the log and does not wait for the disk, which
is flushed when the log is checkpointed into the file (every 1000 pages). A killed process loses no acknowledged
operation, since its writes are already in the kernel. A host that loses power finds the file as of some recent commit,
never a damaged one. The lost commits concern pods whose sandboxes are lost too, and the sources report the rest again.
`synchronous = FULL` would keep those commits as well. Measured on a fast disk, a single operation then takes 0.3 ms
instead of 0.05 ms and many concurrent ones are 4 % slower; on a slow disk each commit would wait for 5 to 20 ms.
"""

import contextlib
import os
import sqlite3
from typing import Any, Final

from contrail_config.embedded.full_disk import store_error
from contrail_config.embedded.lock import FileLock
from contrail_config.embedded.schema import APPLICATION_ID, STATEMENTS, VERSION
from contrail_config.errors import StoreUnavailableError

_BUSY_TIMEOUT: Final = 5.0
"""Seconds to wait for another tool that reads the file."""

_CACHE_KIB: Final = 8192

_OLDEST_SQLITE: Final = (3, 35)
"""First version that supports RETURNING."""


class Database:
    """Open store file. Used and closed only by the thread that opened it."""

    def __init__(self, path: str, connection: sqlite3.Connection, lock: FileLock) -> None:
        self.path = path
        self.connection = connection
        self._lock = lock

    def close(self) -> None:
        """Checkpoints the log into the file and releases the lock."""
        try:
            self.connection.close()
        finally:
            self._lock.release()

    def unavailable(self, error: sqlite3.Error) -> StoreUnavailableError:
        """Returns the error for callers, chained to the SQLite error."""
        return store_error(self.path, error)

    def probe(self) -> None:
        """Writes a page of the file, unchanged. Raises sqlite3.Error if that is not possible."""
        self.connection.execute(f"PRAGMA user_version = {VERSION}")


def open_database(path: str) -> Database:
    """Opens the file, or creates it (0600) with its directory (0700).

    Raises StoreUnavailableError, which names the file, if another process has locked it, if it is damaged, belongs to
    another application or a newer release, or on a system error; StoreFullError if the disk is full.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreUnavailableError(f"{path}: SQLite {sqlite3.sqlite_version} is too old, 3.35 or later is required")
    path = os.path.realpath(path)  # a symbolic link to the file must lead to the same lock and log
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with contextlib.ExitStack() as undo:
            lock = FileLock(f"{path}.lock")
            undo.callback(lock.release)
            connection = undo.enter_context(contextlib.closing(_connect(path)))
            _check(connection, path)
            undo.pop_all()
    except (OSError, sqlite3.Error) as error:
        raise store_error(path, error) from error
    return Database(path, connection, lock)


def _connect(path: str) -> sqlite3.Connection:
    # Created here, since SQLite would create it with mode 0644. isolation_level None: transactions are explicit.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None, cached_statements=256)


def _check(connection: sqlite3.Connection, path: str) -> None:
    """Validates the file before anything is changed, and creates the tables in an empty one.

    The integrity check of the whole file takes half a second for 150,000 virtual machines.
    """
    application, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    if not empty and application != APPLICATION_ID:
        raise StoreUnavailableError(f"{path}: database of another application")
    if version > VERSION:
        raise StoreUnavailableError(f"{path}: schema version {version} is newer than this release supports ({VERSION})")
    # quick_check skips the comparison of indexes with tables, which integrity_check does; (1): the first problem only.
    if (found := _pragma(connection, "quick_check(1)")) != "ok":
        raise StoreUnavailableError(f"{path}: damaged: {found}")
    _configure(connection)  # after the checks: the journal mode is written to the file
    if empty:
        _create_tables(connection)


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")


def _create_tables(connection: sqlite3.Connection) -> None:
    # One transaction: a kill leaves an empty file or a complete schema with its version.
    connection.execute("BEGIN IMMEDIATE")
    for statement in STATEMENTS:
        connection.execute(statement)
    connection.execute("COMMIT")


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]
