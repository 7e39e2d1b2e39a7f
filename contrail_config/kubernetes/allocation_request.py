"""One operation on addresses that somebody waits for, planned until it is saved or cannot be."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from contrail_config.errors import StoreError
from contrail_config.kubernetes.blocks import BlockKey
from contrail_config.kubernetes.change_set import ChangeSet

T = TypeVar("T")

Failures = Mapping[BlockKey, StoreError | None]
"""Blocks that were not saved, and why; None: somebody else had written them, and they were read again."""


class AllocationRequest(Generic[T]):
    """`operation` edits the draft and returns what the caller is told, or raises a StoreError and edits nothing."""

    def __init__(self, operation: Callable[[ChangeSet], T], draft: ChangeSet) -> None:
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._operation = operation
        self._draft = draft
        self._results: list[T] = []
        self._refusal: Exception | None = None

    def plan(self, now: float) -> None:
        """Edits the ledger, from the beginning."""
        self._draft.begin(now)
        self._results.clear()
        self._refusal = None
        try:
            self._results.append(self._operation(self._draft))
        except Exception as error:  # noqa: BLE001 - it belongs to the caller, and ends nothing here
            self._refusal = error
            self._draft.take_back()

    @property
    def blocks(self) -> Collection[BlockKey]:
        """Those that must be saved for it to hold, as it was planned last."""
        return self._draft.blocks

    def settle(self, failures: Failures) -> bool:
        """Tells the caller how it ended; False if it has to be planned again.

        A refusal may be due to an edit that was not saved, so it counts only if all were: `failures` are those alone
        that concern any job, or were read again.
        """
        lost = {key: failures[key] for key in self._draft.blocks if key in failures}
        if error := next((error for error in lost.values() if error is not None), None):
            self.fail(error)
            return True
        if lost or (self._refusal is not None and failures):
            self._draft.lose(lost)
            return False
        if self._refusal is not None:
            self.fail(self._refusal)
        elif not self.future.done():  # else its caller was cancelled
            self.future.set_result(self._results[0])
        return True

    def give_up(self, error: Exception) -> None:
        """Tells the caller why it was refused, or, if it was not, of the error."""
        self.fail(self._refusal or error)

    def fail(self, error: Exception) -> None:
        """Tells the caller of an error."""
        if not self.future.done():
            self.future.set_exception(error)
