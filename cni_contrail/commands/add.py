"""ADD: attaches a pod, all its interfaces (thick) or one (delegated), all or nothing.

The record is written before the first link is made, and marked as finished when all is done. Whatever goes wrong in
between is undone by the record; if the process is killed, the next ADD or DEL of the container does it.
"""

import contextlib
from collections.abc import Iterator

from cni_contrail.agent.waiting import Patience, await_list
from cni_contrail.commands.choosing import choose
from cni_contrail.commands.request import LOCK_PATIENCE, Request, open_sandbox
from cni_contrail.commands.takedown import take_down
from cni_contrail.commands.wiring import wire
from cni_contrail.errors import Code, PluginError
from cni_contrail.protocol.netconf import refuse_unsupported_fields
from cni_contrail.state.records import Record


def add(request: Request) -> str:
    """Carries out ADD and returns its result; raises `PluginError`."""
    refuse_unsupported_fields(request.config)
    _refuse_unsupported_settings(request)
    call = request.call
    with open_sandbox(call) as netns, request.attachments.lock(call.container_id, LOCK_PATIENCE):
        before = _clear_unfinished(request)
        others = [each for each in request.attachments.of_container(call.container_id) if each.ifname != call.ifname]
        _refuse_mixed_modes(request, others)
        patience = Patience(request.settings.agent_patience, request.settings.poll_timeout, request.journal)
        served = await_list(request.agent, request.machine_name, request.pod, patience)
        chosen = choose(request, served, others, before)
        with _undone_if_it_fails(request):
            return wire(request, netns, served, chosen, patience)


def _refuse_unsupported_settings(request: Request) -> None:
    if request.settings.vif_type != "veth":
        kind = request.settings.vif_type
        raise PluginError(Code.UNSUPPORTED_FIELD, f'vif-type "{kind}" is not supported yet')


def _clear_unfinished(request: Request) -> Record | None:
    """Takes down what an ADD of this attachment left that was killed, and returns its record."""
    record = request.attachments.read(request.call.container_id, request.call.ifname)
    if record is None:
        return None
    if record.finished:
        raise PluginError(Code.EXISTS, f"container {record.container_id} has attachment {record.ifname} already")
    request.journal.warning("an earlier ADD of this attachment did not end: it is taken down and done again")
    take_down(request, record)
    return record


def _refuse_mixed_modes(request: Request, others: list[Record]) -> None:
    """One container is attached thick or delegated, never both; and thick only once, since it takes all there is."""
    if others and (request.is_thick or others[0].thick):
        was = "thick" if others[0].thick else "delegated"
        now = "thick" if request.is_thick else "delegated"
        raise PluginError(
            Code.INVALID_CONFIG,
            f"container {request.call.container_id} is attached already, {was}, by {others[0].ifname}: "
            f"network {request.config.name} cannot be attached {now}",
        )


@contextlib.contextmanager
def _undone_if_it_fails(request: Request) -> Iterator[None]:
    try:
        yield
    except BaseException:
        record = request.attachments.read(request.call.container_id, request.call.ifname)
        if record is not None:
            _undo(request, record)
        raise


def _undo(request: Request, record: Record) -> None:
    try:
        take_down(request, record)
    except PluginError as error:
        request.journal.error(f"{error.message}: left to DEL")
