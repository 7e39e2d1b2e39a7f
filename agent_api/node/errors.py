"""Notes the errors of this process's log, so that they are seen without a login to the node."""

import contextlib
import logging
from collections.abc import Iterator

from agent_api.node.notes import Notes

_LONGEST = 256
"""Characters of one error."""


class ErrorLog(logging.Handler):
    """Adds the message of each error to notes."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(logging.ERROR)
        self._notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        """Notes a record."""
        self._notes.add(record.getMessage()[:_LONGEST])


@contextlib.contextmanager
def noted_errors(notes: Notes) -> Iterator[None]:
    """Has the errors of the whole process noted until the context is left."""
    handler = ErrorLog(notes)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
