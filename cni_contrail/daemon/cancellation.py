"""Ending ADDs that wait: because their runtime hung up, a DEL came for the attachment, or the daemon stops.

An ADD looks here whenever it waits (`cni_contrail.deadline`); one that works on links is not disturbed. What it began
is undone by itself, as after any failure.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence

from cni_contrail.daemon.protocol import ShimConnection
from cni_contrail.deadline import Interruption
from cni_contrail.errors import TryAgainError

Attachment = tuple[str, str]
"""Container ID and CNI_IFNAME."""

_NOT_MADE = -1


class Cancellation(Interruption):
    """Of one ADD. It owns a descriptor: `close` it."""

    def __init__(self, connection: ShimConnection) -> None:
        self._connection = connection
        self._event = _NOT_MADE
        self._reason = ""

    @property
    def descriptors(self) -> Sequence[int]:
        """That of the shim, and that of `cancel`: made for the first wait, since most ADDs never wait."""
        if self._event == _NOT_MADE:
            self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            if self._reason:  # it came before there was a descriptor to write to
                os.eventfd_write(self._event, 1)
        return self._connection.fileno(), self._event

    def cancel(self, reason: str) -> None:
        """Makes the ADD end with error 11 at its next wait."""
        self._reason = reason
        if self._event != _NOT_MADE:
            os.eventfd_write(self._event, 1)

    def check(self) -> None:
        """Raises `TryAgainError` if the ADD shall end."""
        if self._reason:
            raise TryAgainError(self._reason)
        if self._connection.has_hung_up:
            raise TryAgainError("the runtime does not wait for the answer any more")

    def close(self) -> None:
        """Frees the descriptor."""
        if self._event != _NOT_MADE:
            os.close(self._event)


class RunningAdds:
    """The ADDs under way, by attachment; no more than `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._running: dict[Cancellation, Attachment] = {}
        self._closing = ""

    @contextlib.contextmanager
    def begun(self, attachment: Attachment, connection: ShimConnection) -> Iterator[Cancellation]:
        """One more, for as long as it runs; raises `TryAgainError` if there are too many."""
        cancellation = Cancellation(connection)
        try:
            self._enter(attachment, cancellation)
            yield cancellation
        finally:
            with self._lock:
                self._running.pop(cancellation, None)
            cancellation.close()

    def cancel(self, attachment: Attachment) -> None:
        """A DEL came for the attachment."""
        with self._lock:
            for cancellation, running in self._running.items():
                if running == attachment:
                    cancellation.cancel(f"attachment {attachment[1]} was deleted while its interfaces were waited for")

    def close(self, reason: str) -> None:
        """Cancels all there are and will be."""
        with self._lock:
            self._closing = reason
            for cancellation in self._running:
                cancellation.cancel(reason)

    def _enter(self, attachment: Attachment, cancellation: Cancellation) -> None:
        with self._lock:
            if self._closing:
                raise TryAgainError(self._closing)
            if len(self._running) >= self._most:
                raise TryAgainError(f"{self._most} ADDs are under way already")
            self._running[cancellation] = attachment
