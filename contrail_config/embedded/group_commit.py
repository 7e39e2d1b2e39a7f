"""Group commit: many operations in one transaction, each of them atomic.

A commit costs as much as several operations, so all waiting ones share one. An operation checks before it writes, so a
rejected operation has nothing to roll back. If one fails after a write nevertheless (a SQLite error), the transaction
is rolled back and each operation is repeated in a transaction of its own. That is rare. Savepoints around each
operation would do the same at the cost of two more statements each. Each statement releases the interpreter lock, and
the thread then waits for it behind a busy event loop.

Results and changes are published only after the commit. Reads run between transactions and see all operations that
were submitted before them.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from contrail_config.embedded.engine import Engine

Callback = Callable[[], None]


class StoreOperation(NamedTuple):
    """Operation for the worker thread. `done` is called in the loop with its result or its error."""

    run: Callable[[], Any]
    writes: bool
    done: Callable[[Any, Exception | None], None]


class _PartialWriteError(Exception):
    """An operation failed after it had written."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


class GroupCommit:
    """Runs batches of operations on an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = engine.database.connection

    def execute(self, operations: Sequence[StoreOperation]) -> list[Callback]:
        """Runs the operations, writes first. Returns the calls that publish the outcome, in order, in the loop."""
        writes = [operation for operation in operations if operation.writes]
        calls = self._write(writes) if writes else []
        return calls + [self._run(operation) for operation in operations if not operation.writes]

    def _write(self, operations: Sequence[StoreOperation]) -> list[Callback]:
        try:
            return self._transact(operations)
        except _PartialWriteError as partial_write:
            self._roll_back()
            if len(operations) > 1:
                return [call for operation in operations for call in self._write([operation])]
            return [self._failure(operations[0], partial_write.reason)]
        except Exception as error:  # noqa: BLE001 - any error must reach the callers, which would wait forever
            self._roll_back()
            return [self._failure(operation, error) for operation in operations]

    def _transact(self, operations: Sequence[StoreOperation]) -> list[Callback]:
        # IMMEDIATE takes the write lock now: another tool that writes is awaited here, not in the middle.
        self._db.execute("BEGIN IMMEDIATE")
        self._engine.addresses.expire_holds()
        results = [self._run_atomically(operation) for operation in operations]
        self._db.execute("COMMIT")
        changes = self._engine.feed.route(self._engine.changes)
        self._engine.changes.clear()
        return changes + results

    def _run_atomically(self, operation: StoreOperation) -> Callback:
        """Runs the operation. Raises _PartialWriteError if it failed after a write, or SQLite rolled back by itself."""
        before = self._db.total_changes  # counts every row written on the connection
        try:
            result = operation.run()
        except Exception as error:
            # SQLite rolls back by itself on some errors, such as a full disk.
            if self._db.total_changes != before or not self._db.in_transaction:
                raise _PartialWriteError(error) from error
            return self._failure(operation, error)
        return partial(operation.done, result, None)

    def _run(self, operation: StoreOperation) -> Callback:
        try:
            result = operation.run()
        except Exception as error:  # noqa: BLE001 - goes to the caller; the worker continues
            return self._failure(operation, error)
        return partial(operation.done, result, None)

    def _roll_back(self) -> None:
        """Rolls back the transaction and clears the caches, which may hold its effects."""
        with contextlib.suppress(sqlite3.Error):  # the next BEGIN fails then, and reports why
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        self._engine.clear_caches()

    def _failure(self, operation: StoreOperation, error: Exception) -> Callback:
        reported = self._engine.database.unavailable(error) if isinstance(error, sqlite3.Error) else error
        return partial(operation.done, None, reported)
