"""An ADD under way, as its record shows it to other calls: begun, still wanted, undone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from cni_contrail.commands.detach import detach, remove_record
from cni_contrail.commands.request import Request
from cni_contrail.errors import Code, PluginError, TryAgainError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import own_netns
from cni_contrail.state.owners import owned
from cni_contrail.state.records import Record


class StartedAttempt(NamedTuple):
    """The record that was begun; `before` is the interface that an ADD which did not end had chosen, or empty."""

    record: Record
    before: str


class Attempt:
    """One ADD; `name` tells it from all others. Who calls a method holds the container's lock."""

    def __init__(self, request: Request, name: str) -> None:
        self.name = name
        self._request = request
        self.is_begun = False

    def begin(self) -> StartedAttempt:
        """Finds that it may be made, and takes down what an earlier one left that did not end.

        Raises `PluginError`: 102 if the attachment is there already, 7 if the container is attached in another mode.
        """
        request = self._request
        records = request.node.attachments.of_container(request.call.container_id)
        before = _clear_unfinished(request, records)
        _refuse_mixed_modes(request, records)
        self.is_begun = True
        record = Record(
            container_id=request.call.container_id,
            ifname=request.call.ifname,
            attempt=self.name,
            netns=request.call.netns,
            thick=request.is_thick,
            network=request.config.name,
            host_netns=own_netns(),
        )
        return StartedAttempt(record, before)

    def record(self) -> Record | None:
        """Its record as it is now, None if there is none: not yet, or not any more."""
        record = self._request.node.attachments.read(self._request.call.container_id, self._request.call.ifname)
        return record if record is not None and record.attempt == self.name else None

    def ensure_still_wanted(self) -> None:
        """Raises `TryAgainError` if a DEL, or another ADD after it, took the record away."""
        if self.record() is None:
            raise TryAgainError(
                f"attachment {self._request.call.ifname} was deleted while its interfaces were waited for"
            )


@contextlib.contextmanager
def undo_on_error(request: Request) -> Iterator[Attempt]:
    """Takes down what the attempt has made if an error passes; nobody holds the lock then."""
    attempt = Attempt(request, os.urandom(8).hex())
    with owned(request.node.settings.state_dir, attempt.name):
        try:
            yield attempt
        except BaseException as error:
            if attempt.is_begun:
                _undo(request, attempt, error)
            raise


def _clear_unfinished(request: Request, records: Sequence[Record]) -> str:
    """Returns the uuid of the interface that an unfinished attempt had chosen, or empty."""
    record = next((each for each in records if each.ifname == request.call.ifname), None)
    if record is None:
        return ""
    if record.finished:
        raise PluginError(Code.EXISTS, f"container {record.container_id} has attachment {record.ifname} already")
    request.node.log.warning("an earlier ADD of this attachment did not end: it is taken down and done again")
    _take_down(request, record)
    return record.interfaces[0].uuid if record.interfaces else ""


def _refuse_mixed_modes(request: Request, records: Sequence[Record]) -> None:
    """One container is attached thick or delegated, never both; and thick only once, since it takes all there is."""
    others = [each for each in records if each.ifname != request.call.ifname]
    if others and (request.is_thick or others[0].thick):
        was = "thick" if others[0].thick else "delegated"
        now = "thick" if request.is_thick else "delegated"
        raise PluginError(
            Code.INVALID_CONFIG,
            f"container {request.call.container_id} is attached already, {was}, by {others[0].ifname}: "
            f"network {request.config.name} cannot be attached {now}",
        )


def _undo(request: Request, attempt: Attempt, cause: BaseException) -> None:
    try:
        with request.locked():
            record = attempt.record()
            if record is None:
                return
            if isinstance(cause, PluginError) and cause.code == Code.EXISTS:
                remove_record(
                    request.node, record, notify=request.node.notify
                )  # no link was made: what has the name is not ours
            else:
                _take_down(request, record)
    except PluginError as error:
        request.node.log.error(f"{error.message}: left to DEL")


def _take_down(request: Request, record: Record) -> None:
    detach(request.node, record, sandbox=request.sandbox, notify=request.node.notify)
