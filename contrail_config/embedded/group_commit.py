"""Many operations in one transaction, each atomic by itself.

A commit costs as much as several operations, so all that wait share one. An operation checks before it writes, so one
that is refused has nothing to take back. Should one fail halfway nevertheless (an error of the engine), the whole is
taken back and each operation done again in a transaction of its own. That is rare; savepoints round each operation
would buy the same at the price of two more statements each, and each statement gives the interpreter lock away, for
which the thread then waits behind a busy event loop.

Nobody hears of a result or a change before it is committed. Reads run between transactions: they see what was asked
for before them, committed.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from contrail_config.embedded.engine import Engine

Call = Callable[[], None]


class Job(NamedTuple):
    """An operation for the worker's thread; `done` is called in the loop with its result or its error."""

    operation: Callable[[], Any]
    writes: bool
    done: Callable[[Any, Exception | None], None]


class _HalfDoneError(Exception):
    """An operation failed after it had written."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


class GroupCommit:
    """Runs batches of jobs on an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = engine.database.connection

    def execute(self, jobs: Sequence[Job]) -> list[Call]:
        """Does the jobs, the writes first, and returns the calls that tell of it, for the loop to make in order."""
        writes = [job for job in jobs if job.writes]
        told = self._write(writes) if writes else []
        return told + [self._attempt(job) for job in jobs if not job.writes]

    def _write(self, jobs: Sequence[Job]) -> list[Call]:
        try:
            return self._transact(jobs)
        except _HalfDoneError as half_done:
            self._abandon()
            if len(jobs) > 1:
                return [call for job in jobs for call in self._write([job])]
            return [self._failure(jobs[0], half_done.reason)]
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody shall wait for ever
            self._abandon()
            return [self._failure(job, error) for job in jobs]

    def _transact(self, jobs: Sequence[Job]) -> list[Call]:
        self._db.execute("BEGIN IMMEDIATE")
        self._engine.addresses.end_holds()
        results = [self._attempt_whole(job) for job in jobs]
        self._db.execute("COMMIT")
        changes = self._engine.feed.route(self._engine.changes)
        self._engine.changes.clear()
        return changes + results

    def _attempt_whole(self, job: Job) -> Call:
        """Does the job. Raises _HalfDoneError if it failed but left something written, or SQLite took all back."""
        before = self._db.total_changes
        try:
            result = job.operation()
        except Exception as error:
            if self._db.total_changes != before or not self._db.in_transaction:
                raise _HalfDoneError(error) from error
            return self._failure(job, error)
        return partial(job.done, result, None)

    def _attempt(self, job: Job) -> Call:
        try:
            result = job.operation()
        except Exception as error:  # noqa: BLE001 - it belongs to the caller, and ends nothing here
            return self._failure(job, error)
        return partial(job.done, result, None)

    def _abandon(self) -> None:
        """Takes back the transaction, and drops what memory holds of it."""
        with contextlib.suppress(sqlite3.Error):  # the next BEGIN fails then, and tells why
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        self._engine.forget()

    def _failure(self, job: Job, error: Exception) -> Call:
        told = self._engine.database.unavailable(error) if isinstance(error, sqlite3.Error) else error
        return partial(job.done, None, told)
