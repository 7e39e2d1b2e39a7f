"""ADD: attaches a pod, all its interfaces (thick) or one (delegated), all or nothing.

The record is begun before the agent's answer is read, holds everything before the first link is made, and is marked as
finished when all is done. Whatever goes wrong in between is undone by it; if the process is killed, the next ADD or
DEL of the container does that. While the agent is waited for, no lock is held: a DEL that comes meanwhile takes the
record away, and the ADD sees it. A result that the runtime does not take is a failure too. What it need not
wait for is done when it has the result: neighbours are told, and what others left is swept up.
"""

from __future__ import annotations

from cni_contrail.agent.waiting import Patience, asked_for_list
from cni_contrail.commands.announcing import announce_attached
from cni_contrail.commands.attempt import Attempt, begun, ensure_still_wanted
from cni_contrail.commands.choosing import choose
from cni_contrail.commands.node import Node
from cni_contrail.commands.request import Request, open_sandbox
from cni_contrail.commands.sweep import sweep
from cni_contrail.commands.wiring import wire
from cni_contrail.protocol.netconf import refuse_unsupported_fields
from cni_contrail.settings import refuse_unsupported_settings


def add(request: Request) -> str:
    """Carries out ADD and returns its result; raises `PluginError`."""
    node = request.node
    refuse_unsupported_fields(request.config)
    refuse_unsupported_settings(node.settings)
    with open_sandbox(request) as netns:
        attempt, result = _attach(request, netns)
        announce_attached(request, netns, attempt)
    sweep(node, request.call.container_id)
    node.pending.send_some(node.agent)
    return result


def _attach(request: Request, netns: int) -> tuple[Attempt, str]:
    node, patience = request.node, _patience(request.node)
    with (
        asked_for_list(node.agent, request.machine_name, request.pod, patience) as listed,
        begun(request) as attempt,
    ):
        with node.phase("list"):
            served = listed()
        with request.locked():
            ensure_still_wanted(request, attempt)
            chosen = choose(request, served, attempt.before)
            result = wire(request, netns, served, chosen, attempt.record, patience)
        node.surroundings.deliver(result)
    return attempt, result


def _patience(node: Node) -> Patience:
    settings = node.settings
    return Patience(settings.agent_patience, settings.poll_timeout, node.journal, node.surroundings.interruption)
