"""Full disk: which errors mean it, and how the store notices that there is space again.

SQLite reports a full disk as such where it appends to the log or the file. Where it creates files, or extends the
memory that connections share, the error is one of several; whether the disk is full is then asked of the kernel.
"""

import asyncio
import errno
import logging
import os
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Final

from contrail_config.errors import StoreFullError, StoreUnavailableError
from contrail_config.kube.backoff import Backoff

log = logging.getLogger(__name__)

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_PERHAPS_FULL: Final = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
_PRIMARY_CODE: Final = 0xFF  # of SQLite's extended error codes

_FIRST_PROBE, _LONGEST_PAUSE = 0.2, 5.0


def store_error(path: str, error: OSError | sqlite3.Error) -> StoreUnavailableError:
    """Returns the store error for an error of the file, chained to it."""
    is_full = _is_full(path, error)
    mapped = StoreFullError(f"{path}: the disk is full") if is_full else StoreUnavailableError(f"{path}: {error}")
    mapped.__cause__ = error
    return mapped


class FullDisk:
    """`problem`: the disk is full; None if it is not. `probe` writes something; raises StoreFullError."""

    def __init__(self, probe: Callable[[], Awaitable[None]]) -> None:
        self._probe = probe
        self._task: asyncio.Task[None] | None = None
        self.problem: str | None = None

    def note(self, error: StoreFullError) -> None:
        """Notes that a write failed; from now on probes until one succeeds."""
        self.problem = str(error)
        if self._task is None:
            log.error("%s: writes fail until there is space", error)
            self._task = asyncio.create_task(self._probe_until_space())

    async def close(self) -> None:
        """Ends the probes."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _probe_until_space(self) -> None:
        backoff = Backoff(first=_FIRST_PROBE, longest=_LONGEST_PAUSE)
        try:
            while self.problem is not None:
                await asyncio.sleep(backoff.next_pause())
                try:
                    await self._probe()
                except StoreUnavailableError as error:
                    self.problem = str(error)
                else:
                    log.info("there is space on the disk again")
                    self.problem = None
        finally:
            self._task = None


def _is_full(path: str, error: OSError | sqlite3.Error) -> bool:
    if isinstance(error, OSError):
        return error.errno in _FULL
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & _PRIMARY_CODE
    return code == sqlite3.SQLITE_FULL or (code in _PERHAPS_FULL and not _has_space(path))


def _has_space(path: str) -> bool:
    try:
        state = os.statvfs(os.path.dirname(path))
    except OSError:
        return True  # another problem, which the original error describes
    return state.f_bavail > 0 and (state.f_files == 0 or state.f_favail > 0)
