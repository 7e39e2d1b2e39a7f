"""Own writes whose events are still to come.

A write is applied to the cache at once, and its event comes later. Until then, events show the object as it was before
or between our writes: they must not take the cache back. The server has no version by which to order them, so the
values are compared. A lost event would leave a value here, until a list is requested.
"""

from typing import Generic, TypeVar

V = TypeVar("V")


class OwnWrites(Generic[V]):
    """Values by uuid, in the order in which they were written; None for a deletion."""

    def __init__(self) -> None:
        self._values: dict[str, list[V | None]] = {}

    def wrote(self, uuid: str, before: V | None, after: V | None) -> None:
        """Notes a write: its event shows `after`, and those until then `before`."""
        if before == after:
            return  # the event was faster than the answer
        values = self._values.setdefault(uuid, [before])
        values.append(after)

    def is_outdated(self, uuid: str, value: V | None) -> bool:
        """Returns whether an event shows a state that our own writes have replaced."""
        values = self._values.get(uuid)
        if values is None:
            return False
        if value not in values:
            return False  # somebody else wrote
        position = len(values) - 1 - values[::-1].index(value)
        if position == len(values) - 1:
            del self._values[uuid]
            return False
        del values[:position]
        return True

    def forget(self) -> None:
        """Forgets all writes: what is read from now on is later than all of them."""
        self._values.clear()
