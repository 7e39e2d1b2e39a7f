"""Hooks of a type in creates, updates and deletes of its objects."""

from collections.abc import Callable

from tests.support.contrail_api.database import Database
from tests.support.contrail_api.references import Resolved
from tests.support.contrail_api.stored import Object, Stored

Claim = Callable[[], None]
"""Claims numbers of an object that is about to be written. Raises ApiError."""


def nothing() -> None:
    """Claims nothing."""


class Behaviour:
    """A type without rules of its own. Every method but the last two may raise ApiError."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def check_body(self, body: Object) -> None:
        """Checks the body of a create, before its references are resolved."""

    def check_create(self, new: Stored) -> Claim:
        """Checks an object, and returns what claims its numbers, all or none, from what was read for the check."""
        return nothing

    def check_update(self, stored: Stored, changed: Object, references: Resolved) -> None:
        """Checks an update's properties and references, and completes them in place."""

    def check_reference(self, stored: Stored, kind: str, target: str) -> None:
        """Checks a reference that `ref-update` adds."""

    def check_delete(self, stored: Stored) -> None:
        """Checks a deletion."""

    def created(self, stored: Stored) -> None:
        """Completes an object after its first write."""

    def deleted(self, stored: Stored) -> None:
        """Frees what belonged to a deleted object."""
