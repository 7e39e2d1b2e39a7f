"""Observer of a client's requests and watches, for metrics."""

from typing import Protocol


class ClientObserver(Protocol):
    """Called by a client from its event loop."""

    def responded(self, method: str, status: str, seconds: float) -> None:
        """Counts a request, and the time until its response began.

        `method` is that of HTTP, or `WATCH`. `status` is the code of the response, or `none` if there was none.
        """

    def heard(self, resource: str) -> None:
        """Notes that the server accepted a watch of the resource (plural name), or sent an event of one."""


class NoObserver:
    """Ignores everything."""

    def responded(self, method: str, status: str, seconds: float) -> None:
        """Does nothing."""

    def heard(self, resource: str) -> None:
        """Does nothing."""
