"""An ADD under way, as its record shows it to other calls: begun, still wanted, undone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from cni_contrail.commands.request import Request
from cni_contrail.commands.takedown import take_down
from cni_contrail.errors import Code, PluginError, TryAgainError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.state.records import Record


class Attempt(NamedTuple):
    """The record that was begun; `before` is the interface that an ADD which did not end had chosen, or empty."""

    record: Record
    before: str


def begin(request: Request) -> Attempt:
    """Begins the record, in place of one that did not end.

    Raises `PluginError`: 102 if the attachment is there already, 7 if the container is attached in another mode.
    """
    with request.locked():
        before = _clear_unfinished(request)
        _refuse_mixed_modes(request)
        record = Record(
            container_id=request.call.container_id,
            ifname=request.call.ifname,
            attempt=os.urandom(8).hex(),
            netns=request.call.netns,
            thick=request.is_thick,
        )
        request.attachments.write(record)
    return Attempt(record, before)


def ensure_still_wanted(request: Request, attempt: Attempt) -> None:
    """Raises `TryAgainError` if a DEL, or another ADD after it, took the record away; the caller holds the lock."""
    if _current(request, attempt) is None:
        raise TryAgainError(f"attachment {request.call.ifname} was deleted while its interfaces were waited for")


@contextlib.contextmanager
def undone_if_it_fails(request: Request, attempt: Attempt) -> Iterator[None]:
    """Takes down what the attempt has made if an error passes; the caller does not hold the lock."""
    try:
        yield
    except BaseException:
        _undo(request, attempt)
        raise


def _clear_unfinished(request: Request) -> str:
    record = request.attachments.read(request.call.container_id, request.call.ifname)
    if record is None:
        return ""
    if record.finished:
        raise PluginError(Code.EXISTS, f"container {record.container_id} has attachment {record.ifname} already")
    request.journal.warning("an earlier ADD of this attachment did not end: it is taken down and done again")
    take_down(request, record)
    return record.interfaces[0].uuid if record.interfaces else ""


def _refuse_mixed_modes(request: Request) -> None:
    """One container is attached thick or delegated, never both; and thick only once, since it takes all there is."""
    others = request.attachments.of_container(request.call.container_id)
    if others and (request.is_thick or others[0].thick):
        was = "thick" if others[0].thick else "delegated"
        now = "thick" if request.is_thick else "delegated"
        raise PluginError(
            Code.INVALID_CONFIG,
            f"container {request.call.container_id} is attached already, {was}, by {others[0].ifname}: "
            f"network {request.config.name} cannot be attached {now}",
        )


def _undo(request: Request, attempt: Attempt) -> None:
    try:
        with request.locked():
            record = _current(request, attempt)
            if record is not None:
                take_down(request, record)
    except PluginError as error:
        request.journal.error(f"{error.message}: left to DEL")


def _current(request: Request, attempt: Attempt) -> Record | None:
    """The record as it is now, None if it is not this attempt's any more."""
    record = request.attachments.read(request.call.container_id, request.call.ifname)
    return record if record is not None and record.attempt == attempt.record.attempt else None
