"""Observer of a client's requests and watches, for metrics."""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class ClientObserver(Protocol):
    """Called by a client from its event loop."""

    def responded(self, method: str, status: str, seconds: float) -> None:
        """Counts a request, and the time until its response began.

        `method` is that of HTTP, or `WATCH`. `status` is the code of the response, or `none` if there was none.
        """

    def watching(self, resource: str) -> AbstractContextManager[Callable[[], None]]:
        """Observes a watch of the resource (plural name) inside the context, also while it is being opened again.

        Yields what is to be called when the server has accepted the watch, or sent something for it.
        """


class NoObserver:
    """Ignores everything."""

    def responded(self, method: str, status: str, seconds: float) -> None:
        """Does nothing."""

    def watching(self, resource: str) -> AbstractContextManager[Callable[[], None]]:  # noqa: ARG002 - as the protocol
        """Does nothing."""
        return contextlib.nullcontext(ignore_event)


def ignore_event() -> None:
    """Does nothing."""
