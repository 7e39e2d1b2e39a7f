"""Opens the store's file: locked, checked, and set up for writing ahead.

Write-ahead logging with `synchronous = NORMAL`: a commit is one write to the log, without waiting for the disk, which
is flushed when the log goes into the file (every 1000 pages). A process that is killed at any moment loses nothing
that was acknowledged, since what it wrote is in the kernel. A machine that loses power finds the file as it was after
some recent commit, never a damaged one; what is lost then concerned pods whose sandboxes went with the power, and the
sources tell the rest again. FULL would keep that too. Measured on a fast disk it makes an operation alone take 0.3 ms
instead of 0.05 ms, and many together 4 % slower; on a slow disk each commit would wait for 5 to 20 ms.
"""

import contextlib
import os
import sqlite3
from typing import Any, Final

from contrail_config.embedded.lock import OwnerLock
from contrail_config.embedded.schema import APPLICATION_ID, STATEMENTS, VERSION
from contrail_config.errors import StoreUnavailableError

_BUSY_TIMEOUT: Final = 5.0
"""Seconds to wait for somebody who looks into the file with another tool."""

_CACHE_KIB: Final = 8192

_OLDEST_SQLITE: Final = (3, 35)
"""The first version that knows RETURNING."""


class Database:
    """An open store file. Used and closed by the thread that opened it."""

    def __init__(self, path: str, connection: sqlite3.Connection, lock: OwnerLock) -> None:
        self.path = path
        self.connection = connection
        self._lock = lock

    def close(self) -> None:
        """Puts the log into the file and gives the lock free."""
        try:
            self.connection.close()
        finally:
            self._lock.release()

    def unavailable(self, error: sqlite3.Error) -> StoreUnavailableError:
        """What callers are told of an error of the engine, chained to it."""
        told = StoreUnavailableError(f"{self.path}: {error}")
        told.__cause__ = error
        return told


def open_database(path: str) -> Database:
    """Opens the file, or makes it (0600) with its directory (0700).

    Raises StoreUnavailableError, which names the file, if another process holds it, if it is damaged, not ours or of a
    newer version, or if the system refuses.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreUnavailableError(f"{path} needs SQLite 3.35 or later; this Python has {sqlite3.sqlite_version}")
    path = os.path.realpath(path)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with contextlib.ExitStack() as undo:
            lock = OwnerLock(f"{path}.lock")
            undo.callback(lock.release)
            connection = undo.enter_context(contextlib.closing(_connect(path)))
            _check(connection, path)
            undo.pop_all()
    except (OSError, sqlite3.Error) as error:
        raise StoreUnavailableError(f"{path}: {error}") from error
    return Database(path, connection, lock)


def _connect(path: str) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None, cached_statements=256)


def _check(connection: sqlite3.Connection, path: str) -> None:
    """Makes the tables in an empty file; refuses one that is not ours, or not whole, before anything is changed.

    The check of the whole file takes half a second for 150,000 machines.
    """
    application, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    if not empty and application != APPLICATION_ID:
        raise StoreUnavailableError(f"{path} is a database of another application")
    if version > VERSION:
        raise StoreUnavailableError(f"{path} has schema version {version}; this release knows up to {VERSION}")
    if (found := _pragma(connection, "quick_check(1)")) != "ok":
        raise StoreUnavailableError(f"{path} is damaged: {found}")
    _configure(connection)
    if empty:
        _create_tables(connection)


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")


def _create_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in STATEMENTS:
        connection.execute(statement)
    connection.execute("COMMIT")


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]
