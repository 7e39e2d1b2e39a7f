"""ADD: attaches a pod, all its interfaces (thick) or one (delegated), all or nothing.

The record is begun before the agent is asked, holds everything before the first link is made, and is marked as
finished when all is done. Whatever goes wrong in between is undone by it; if the process is killed, the next ADD or
DEL of the container does that. While the agent is waited for, no lock is held: a DEL that comes meanwhile takes the
record away, and the ADD sees it.
"""

from __future__ import annotations

from cni_contrail.agent.waiting import Patience, await_list
from cni_contrail.commands.attempt import begin, ensure_still_wanted, undone_if_it_fails
from cni_contrail.commands.choosing import choose
from cni_contrail.commands.request import Request, open_sandbox
from cni_contrail.commands.wiring import wire
from cni_contrail.errors import Code, PluginError
from cni_contrail.protocol.netconf import refuse_unsupported_fields


def add(request: Request) -> str:
    """Carries out ADD and returns its result; raises `PluginError`."""
    refuse_unsupported_fields(request.config)
    _refuse_unsupported_settings(request)
    with open_sandbox(request.call) as netns:
        attempt = begin(request)
        with undone_if_it_fails(request, attempt):
            patience = Patience(request.settings.agent_patience, request.settings.poll_timeout, request.journal)
            served = await_list(request.agent, request.machine_name, request.pod, patience)
            with request.locked():
                ensure_still_wanted(request, attempt)
                chosen = choose(request, served, attempt.before)
                return wire(request, netns, served, chosen, attempt.record, patience)


def _refuse_unsupported_settings(request: Request) -> None:
    if request.settings.vif_type != "veth":
        kind = request.settings.vif_type
        raise PluginError(Code.UNSUPPORTED_FIELD, f'vif-type "{kind}" is not supported yet')
