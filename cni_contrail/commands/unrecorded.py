"""Detaches links whose record is lost: damaged, or gone with the state directory.

Their aliases, which hold container, pod and interface, still identify them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cni_contrail.agent.notifications import Notification
from cni_contrail.commands.detach import remove_host_links
from cni_contrail.commands.request import Request
from cni_contrail.errors import Code, DamagedRecordError, PluginError
from cni_contrail.interfaces.fields import UUID
from cni_contrail.interfaces.names import alias, host_name
from cni_contrail.link.errors import LinkError
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.remove import HostLink, links_by_alias_prefix


def detach_unrecorded(request: Request) -> None:
    """Removes the container's links that no record names, and notifies the agent; raises `PluginError` (104)."""
    prefix = alias(request.call.container_id, request.pod, "")
    if request.node.settings.nested_parent:
        _detach_macvlans(request, prefix)
    recorded = _recorded_links(request)
    found = _links(request, prefix)
    unrecorded = [link for link in found if link.host_name not in recorded and _is_of_call(request, link)]
    if not unrecorded:
        return
    remove_host_links(request.node, unrecorded)
    for link in unrecorded:
        _queue_notification(request, link.alias.removeprefix(prefix))
    request.node.pending.send_batch(request.node.agent)
    request.node.log.warning(f"detached {', '.join(link.host_name for link in unrecorded)}: the record was lost")


def _detach_macvlans(request: Request, prefix: str) -> None:
    from cni_contrail.commands.nested import remove_unrecorded  # few nodes need it

    only = "" if request.is_thick else request.call.ifname
    names = remove_unrecorded(request.node, request.sandbox, prefix, only, kept=_recorded_names(request))
    if names:
        request.node.log.warning(f"detached {', '.join(names)}: the record was lost")


def _links(request: Request, prefix: str) -> list[HostLink]:
    try:
        return links_by_alias_prefix(prefix, netns_dir=request.node.settings.netns_dir)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def _is_of_call(request: Request, link: HostLink) -> bool:
    return request.is_thick or link.host_name == host_name(request.call.container_id, request.call.ifname)


def _recorded_links(request: Request) -> set[str]:
    """Host ends of the container's other attachments."""
    return {plan.host_name for plan in _recorded_plans(request)}


def _recorded_names(request: Request) -> set[str]:
    """Interface names of the container's other attachments."""
    return {plan.name for plan in _recorded_plans(request)}


def _recorded_plans(request: Request) -> Iterator[InterfacePlan]:
    for ifname in request.node.attachments.ifnames(request.call.container_id):
        with contextlib.suppress(DamagedRecordError):
            record = request.node.attachments.read(request.call.container_id, ifname)
            yield from (each.plan for each in (record.interfaces if record else ()))


def _queue_notification(request: Request, interface: str) -> None:
    # Our agent uses the pod's UID as the VM's uuid. A Contrail vrouter agent notices by itself that the device is gone.
    vm = request.pod.uid
    if UUID.fullmatch(vm) and UUID.fullmatch(interface):
        request.node.pending.enqueue(Notification(request.call.container_id, vm, interface, ""))
