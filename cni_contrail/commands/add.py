"""ADD: attaches all interfaces of a pod (thick mode) or one of them (delegated mode), all or nothing.

The record is complete before the first link is created, and is marked as finished last. An error in between is rolled
back by it; if the process is killed, the next ADD or DEL of the container does that.

If the agent has the pod's list at once, the whole ADD runs under the container's lock. Otherwise the record is written
without interfaces, and no lock is held while the agent is polled: a DEL that comes in between removes the record,
and the ADD fails. A result that the runtime does not accept is a failure too.

What the runtime need not wait for follows the result: announcing the addresses, sweeping orphaned attachments, and
sending pending notifications.
"""

from __future__ import annotations

import contextlib

from cni_contrail.agent.polling import InterfaceListRequest, PollBudget
from cni_contrail.commands.attach import attach_interfaces
from cni_contrail.commands.attach_steps import FinishedAttachment
from cni_contrail.commands.attempt import Attempt, StartedAttempt
from cni_contrail.commands.interface_selection import select_interfaces
from cni_contrail.commands.request import OpenSandbox, Request
from cni_contrail.commands.sweep import sweep
from cni_contrail.errors import PluginError
from cni_contrail.interfaces.served import ServedList
from cni_contrail.link.announce import announce
from cni_contrail.link.errors import LinkError
from cni_contrail.protocol.netconf import reject_unsupported_fields
from cni_contrail.state.records import Record


def add(request: Request) -> str:
    """Runs ADD and returns its result; raises `PluginError`."""
    node = request.node
    reject_unsupported_fields(request.config)
    budget = _budget(request)
    with (
        OpenSandbox(request) as netns,
        # Sent before the first lock and file: the agent works while they are taken and written.
        contextlib.closing(
            InterfaceListRequest(node.agent, request.virtual_machine_name, request.pod, budget)
        ) as list_request,
    ):
        with Attempt(request) as attempt:
            # Delivery is part of it: a result that the runtime does not accept rolls the ADD back.
            attached = _attach(request, netns, attempt, list_request, budget)
            node.context.deliver(attached.result)
        _announce(request, netns, attached.record)
    # In the daemon the runtime has its result by now, and does not wait for the rest.
    sweep(node, request.call.container_id)
    node.pending.send_batch(node.agent)
    return attached.result


def _attach(
    request: Request, netns: int, attempt: Attempt, list_request: InterfaceListRequest, budget: PollBudget
) -> FinishedAttachment:
    node = request.node
    with request.locked():
        started = attempt.start()
        with node.phase("list"):
            served = list_request.result_now()
        if served is not None:
            return _attach_served(request, netns, served, started, budget)
        # Written before the lock is released: a DEL that comes now finds the record and removes it.
        node.attachments.write(started.record)
    with node.phase("list"):
        served = list_request.wait()
    with request.locked():
        attempt.ensure_not_deleted()
        return _attach_served(request, netns, served, started, budget)


def _attach_served(
    request: Request, netns: int, served: ServedList, started: StartedAttempt, budget: PollBudget
) -> FinishedAttachment:
    selected = select_interfaces(request, served, started.previous_uuid)
    return attach_interfaces(request, netns, served, selected, started.record, budget)


def _budget(request: Request) -> PollBudget:
    node, settings = request.node, request.node.settings
    timeout = settings.agent_timeout(is_thick=request.is_thick)
    return PollBudget(timeout, settings.poll_timeout, node.log, node.context.interruption)


def _announce(request: Request, netns: int, record: Record) -> None:
    """Logs the attachment and announces its addresses to neighbours; never fails.

    The runtime may have its result by now, so a DEL, and another ADD after it, may have come first: an attachment whose
    record is not stored any more is not announced.
    """
    try:
        with request.locked():
            if request.node.attachments.holds(record):
                _log_attached(request, record)
                announce(netns, [each.plan for each in record.interfaces])
    except (PluginError, LinkError) as error:
        request.node.log.warning(f"addresses not announced: {error}")


def _log_attached(request: Request, record: Record) -> None:
    for each in record.interfaces:
        addresses = " ".join(address.address for address in each.plan.addresses)
        request.node.log.bind(vmi=each.uuid).info(f"attached {each.plan.name} {addresses}")
