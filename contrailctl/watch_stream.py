"""Stream of a manager's `/v1/watch` that goes on across broken connections.

The first connection must succeed, so that a wrong address or name is an error at once. After that the stream is
continued from the last id with back-off, until the caller stops: while no manager answers, and when another one leads.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator

import msgspec

from contrailctl.endpoint import Endpoint
from contrailctl.errors import ContrailctlError, ResponseError, UnreachableError
from manager.api.types import WatchedKind, WatchMessage, WatchMessageType

_PATH = "/v1/watch"

SILENCE = 60.0
"""Seconds without a byte after which the connection counts as broken; the manager sends an id every 15 s."""

_FIRST_DELAY = 0.5
_MAX_DELAY = 30.0


class WatchStream:
    """Messages of one kind. `on_failure` is called with each error that is followed by another attempt."""

    def __init__(
        self,
        endpoint: Endpoint,
        kind: WatchedKind,
        *,
        namespace: str | None,
        name: str | None,
        on_failure: Callable[[ContrailctlError], None],
    ) -> None:
        self._endpoint = endpoint
        self._query = {"kind": kind.value, "namespace": namespace, "name": name}
        self._on_failure = on_failure
        self._last_id = ""

    def messages(self) -> Iterator[WatchMessage]:
        """Yields messages other than CLOSED. Raises ContrailctlError if the first connection fails."""
        is_first, failures = True, 0
        while True:
            began = time.monotonic()
            try:
                for message in self._connection():
                    is_first = False
                    if message.type is WatchMessageType.CLOSED:
                        break
                    yield message
            except (UnreachableError, ResponseError) as error:
                if is_first:
                    raise
                self._on_failure(error)
            failures = 0 if time.monotonic() - began > _MAX_DELAY else failures + 1
            threading.Event().wait(_delay(failures))

    def _connection(self) -> Iterator[WatchMessage]:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": self._last_id} if self._last_id else {})}
        data, event_id = b"", b""
        for line in self._endpoint.lines(_PATH, self._query, headers, silence=SILENCE):
            key, _, value = line.rstrip(b"\n").partition(b": ")
            if key == b"data":
                data = value
            elif key == b"id":
                event_id = value
            elif not key:  # the end of an event
                if data:
                    yield self._decoded(data)
                # Afterwards: an event that the caller has not taken is sent again.
                self._last_id = event_id.decode("latin-1") or self._last_id
                data = event_id = b""

    def _decoded(self, data: bytes) -> WatchMessage:
        try:
            return msgspec.json.decode(data, type=WatchMessage)
        except msgspec.DecodeError as error:
            url = f"{self._endpoint.url}{_PATH}"
            raise ContrailctlError(f"{url}: invalid message, or a manager of another version: {error}") from error


def _delay(failures: int) -> float:
    """Returns seconds: doubled with each failure up to a cap, with jitter, so that not all clients come at once."""
    longest = min(_MAX_DELAY, _FIRST_DELAY * 2.0 ** min(failures, 10))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
