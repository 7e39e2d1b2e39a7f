"""One attempt to ADD: started, rolled back on error, and visible to other calls through its record."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType

from cni_contrail.commands.detach import detach, remove_record
from cni_contrail.commands.request import Request
from cni_contrail.errors import Code, PluginError, TryAgainError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import own_netns_identity
from cni_contrail.quoting import cut
from cni_contrail.state.attempt_locks import lock_attempt
from cni_contrail.state.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class StartedAttempt(NamedTuple):
    """The attempt's record without interfaces, and the uuid that an unfinished ADD had selected, or empty."""

    record: Record
    previous_uuid: str


class Attempt:
    """One ADD. If the body of `with` raises, what it created is detached; it must not end with the lock held.

    Callers of the methods hold the container's lock.
    """

    def __init__(self, request: Request) -> None:
        self._name = os.urandom(8).hex()
        self._request = request
        self._is_started = False

    def __enter__(self) -> Self:
        self._lock = lock_attempt(self._request.node.settings.state_dir, self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None and self._is_started:
                _undo(self._request, self, error)
        finally:
            os.close(self._lock)

    def start(self) -> StartedAttempt:
        """Detaches what an earlier, unfinished ADD left, and returns the new record; it is not written yet.

        Raises `PluginError`: 102 if the attachment exists already, 7 if the container is attached in another mode.
        """
        request = self._request
        records = request.node.attachments.of_container(request.call.container_id)
        previous_uuid = _detach_unfinished(request, records)
        _reject_mixed_modes(request, records)
        self._is_started = True
        record = Record(
            container_id=request.call.container_id,
            ifname=request.call.ifname,
            attempt=self._name,
            netns=request.call.netns,
            thick=request.is_thick,
            network=request.config.name,
            host_netns=own_netns_identity(),
        )
        return StartedAttempt(record, previous_uuid)

    def record(self) -> Record | None:
        """Returns the current record of this attempt, None before it is written and after another call removed it."""
        record = self._request.node.attachments.read(self._request.call.container_id, self._request.call.ifname)
        return record if record is not None and record.attempt == self._name else None

    def ensure_not_deleted(self) -> None:
        """Raises `TryAgainError` if a DEL, or another ADD after it, removed the record."""
        if self.record() is None:
            raise TryAgainError(
                f"attachment {self._request.call.ifname}: deleted while ADD was waiting for its interfaces"
            )


def _detach_unfinished(request: Request, records: Sequence[Record]) -> str:
    """Returns the uuid of the interface that an unfinished attempt had selected, or empty."""
    record = next((each for each in records if each.ifname == request.call.ifname), None)
    if record is None:
        return ""
    if record.finished:
        raise PluginError(
            Code.EXISTS, f"attachment {record.ifname} of container {cut(record.container_id)}: already exists"
        )
    request.node.log.warning("an earlier ADD of this attachment did not finish: detaching it before the retry")
    _detach(request, record)
    return record.interfaces[0].uuid if record.interfaces else ""


def _reject_mixed_modes(request: Request, records: Sequence[Record]) -> None:
    """A container is attached thick or delegated, never both, and thick only once, since that takes all interfaces."""
    others = [each for each in records if each.ifname != request.call.ifname]
    if others and (request.is_thick or others[0].thick):
        was = "thick" if others[0].thick else "delegated"
        now = "thick" if request.is_thick else "delegated"
        raise PluginError(
            Code.INVALID_CONFIG,
            f"network {cut(request.config.name)}: cannot attach container {cut(request.call.container_id)} "
            f"in {now} mode: {others[0].ifname} is already attached in {was} mode",
        )


def _undo(request: Request, attempt: Attempt, cause: BaseException) -> None:
    try:
        with request.locked():
            record = attempt.record()
            if record is None:
                return
            if isinstance(cause, PluginError) and cause.code == Code.EXISTS:
                # No link was created: the link that has the name belongs to somebody else.
                remove_record(request.node, record, notify=request.node.notify)
            else:
                _detach(request, record)
    except PluginError as error:
        request.node.log.error(f"rollback failed, DEL will retry it: {error.message}")


def _detach(request: Request, record: Record) -> None:
    detach(request.node, record, sandbox=request.sandbox, notify=request.node.notify)
