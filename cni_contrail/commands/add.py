"""ADD: attaches a pod, all its interfaces (thick) or one (delegated), all or nothing.

The record holds everything before the first link is made, and is marked as finished when all is done. Whatever goes
wrong in between is undone by it; if the process is killed, the next ADD or DEL of the container does that. Where the
agent has the list at once, all is done under one lock. Else the record is begun without it, and while the agent is
waited for no lock is held: a DEL that comes meanwhile takes the record away, and the ADD sees it. A result that the
runtime does not take is a failure too. What it need not wait for is done when it has the result: neighbours are told,
and what others left is swept up.
"""

from __future__ import annotations

import contextlib

from cni_contrail.agent.polling import AskedList, Patience
from cni_contrail.commands.announcing import announce_attached
from cni_contrail.commands.attach import attach_interfaces
from cni_contrail.commands.attempt import Attempt, StartedAttempt, undo_on_error
from cni_contrail.commands.interface_selection import select_interfaces
from cni_contrail.commands.node import Node
from cni_contrail.commands.request import Request, open_sandbox
from cni_contrail.commands.sweep import sweep
from cni_contrail.interfaces.served import ServedList
from cni_contrail.protocol.netconf import refuse_unsupported_fields
from cni_contrail.settings import reject_unsupported_settings


def add(request: Request) -> str:
    """Carries out ADD and returns its result; raises `PluginError`."""
    node = request.node
    refuse_unsupported_fields(request.config)
    reject_unsupported_settings(node.settings)
    patience = _patience(node)
    with (
        open_sandbox(request) as netns,
        contextlib.closing(AskedList(node.agent, request.virtual_machine_name, request.pod, patience)) as asked,
    ):
        with undo_on_error(request) as attempt:
            result = _attach(request, netns, attempt, asked, patience)
            node.context.deliver(result)
        announce_attached(request, netns, attempt)
    sweep(node, request.call.container_id)
    node.pending.send_some(node.agent)
    return result


def _attach(request: Request, netns: int, attempt: Attempt, asked: AskedList, patience: Patience) -> str:
    node = request.node
    with request.locked():
        begun = attempt.begin()
        with node.phase("list"):
            served = asked.come_at_once()
        if served is not None:
            return _wire(request, netns, served, begun, patience)
        node.attachments.write(begun.record)
    with node.phase("list"):
        served = asked.awaited()
    with request.locked():
        attempt.ensure_still_wanted()
        return _wire(request, netns, served, begun, patience)


def _wire(request: Request, netns: int, served: ServedList, begun: StartedAttempt, patience: Patience) -> str:
    return attach_interfaces(
        request, netns, served, select_interfaces(request, served, begun.before), begun.record, patience
    )


def _patience(node: Node) -> Patience:
    settings = node.settings
    return Patience(settings.agent_timeout, settings.poll_timeout, node.log, node.context.interruption)
