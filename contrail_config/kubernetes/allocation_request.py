"""Allocation request: one pending address operation, planned again until it is written or fails."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

from contrail_config.errors import StoreError
from contrail_config.kubernetes.address_operations import AddressOperation
from contrail_config.kubernetes.blocks import BlockKey
from contrail_config.kubernetes.change_set import ChangeSet

T = TypeVar("T")

Failures = Mapping[BlockKey, StoreError | None]
"""Blocks that were not written, and why. None: another writer changed the block, and it has been read again."""


class AllocationRequest(Generic[T]):
    """One operation with its edits and the future of its caller."""

    def __init__(self, operation: AddressOperation[T], changes: ChangeSet) -> None:
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._operation = operation
        self._changes = changes
        self._results: list[T] = []
        self._rejection: Exception | None = None

    def plan(self, now: float) -> None:
        """Applies the operation to the cache, from the beginning."""
        self._changes.begin(now)
        self._results.clear()
        self._rejection = None
        try:
            self._results.append(self._operation.apply(self._changes))
        except Exception as error:  # noqa: BLE001 - goes to the caller; the committer continues
            self._rejection = error
            self._changes.undo()

    @property
    def blocks(self) -> Collection[BlockKey]:
        """Blocks that must be written for the last plan to hold."""
        return self._changes.blocks

    def finish(self, failures: Failures) -> bool:
        """Resolves the future; returns False if the operation has to be planned again.

        A rejection may be due to another request's edit that was not written, so it counts only if all edits were:
        `failures` contains only blocks that some request needs, or that were read again.
        """
        lost = {key: failures[key] for key in self._changes.blocks if key in failures}
        if error := next((error for error in lost.values() if error is not None), None):
            self.fail(error)
            return True
        if lost or (self._rejection is not None and failures):
            self._changes.discard(lost)  # these blocks were read again, without the edits
            return False
        if self._rejection is not None:
            self.fail(self._rejection)
        elif not self.future.done():  # else its caller was cancelled
            self.future.set_result(self._results[0])
        return True

    def give_up(self, error: Exception) -> None:
        """Fails with the rejection of the last plan, or else with this error."""
        self.fail(self._rejection or error)

    def fail(self, error: Exception) -> None:
        """Fails with this error, unless the caller was cancelled."""
        if not self.future.done():
            self.future.set_exception(error)
