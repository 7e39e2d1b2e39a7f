"""Cancellation of calls that wait: their runtime hung up, DEL came for the attachment of an ADD, or the daemon stops.

ADD and STATUS wait for the agent, and check this whenever they do (`cni_contrail.deadline`), an ADD also before it
begins. An ADD that works on links is not interrupted. It rolls itself back, as after any failure.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.deadline import Interruption
from cni_contrail.errors import TryAgainError

AttachmentKey = tuple[str, str]
"""Container ID and CNI_IFNAME."""

_NOT_OPEN = -1


class Cancellation(Interruption):
    """Cancellation of one call. Owns a descriptor: call `close`."""

    def __init__(self, connection: ShimConnection) -> None:
        self._connection = connection
        self._event = _NOT_OPEN
        self._reason = ""

    @property
    def descriptors(self) -> Sequence[int]:
        """The shim's connection and the event of `cancel`, opened for the first wait since most calls never wait."""
        if self._event == _NOT_OPEN:
            self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            if self._reason:  # `cancel` was called before there was an event to signal
                os.eventfd_write(self._event, 1)
        return self._connection.fileno(), self._event

    def cancel(self, reason: str) -> None:
        """Makes the call fail with code 11 at its next wait."""
        # The reason is set first: an event that is opened after this line is signalled there.
        self._reason = reason
        if self._event != _NOT_OPEN:
            os.eventfd_write(self._event, 1)

    def check(self) -> None:
        """Raises `TryAgainError` if the call is cancelled."""
        if self._reason:
            raise TryAgainError(self._reason)
        if self._connection.has_hung_up:
            raise TryAgainError("the runtime closed the connection")

    def close(self) -> None:
        """Closes the descriptor."""
        if self._event != _NOT_OPEN:
            os.close(self._event)


class CancellableCalls:
    """ADDs by attachment, and calls of STATUS, which have none, from their acknowledgement on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[Cancellation, AttachmentKey] = {}
        self._closing = ""

    def add(self, attachment: AttachmentKey, connection: ShimConnection) -> Cancellation:
        """Returns the cancellation of a new call, for `end`. It is cancelled at once if the daemon is stopping."""
        cancellation = Cancellation(connection)
        with self._lock:
            self._running[cancellation] = attachment
            if self._closing:
                cancellation.cancel(self._closing)
        return cancellation

    def end(self, cancellation: Cancellation) -> None:
        """Removes the call, if it is one of these, and closes its cancellation."""
        # Removed under the lock before it is closed: `cancel` must not write to a descriptor that was reused.
        with self._lock:
            self._running.pop(cancellation, None)
        cancellation.close()

    def cancel(self, attachment: AttachmentKey) -> None:
        """Cancels the ADDs of an attachment, for which DEL came."""
        with self._lock:
            for cancellation, running in self._running.items():
                if running == attachment:
                    cancellation.cancel(f"attachment {attachment[1]}: deleted while ADD was waiting for its interfaces")

    def close(self, reason: str) -> None:
        """Cancels all calls, also those that come from now on."""
        with self._lock:
            self._closing = reason
            for cancellation in self._running:
                cancellation.cancel(reason)
