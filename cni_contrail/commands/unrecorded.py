"""Takes down an attachment whose record is lost: damaged, or gone with the state directory.

Its links are still known by their aliases, which name container, pod and interface.
"""

from __future__ import annotations

import contextlib

from cni_contrail.agent.notifications import Notification
from cni_contrail.commands.detach import remove_host_links
from cni_contrail.commands.request import Request
from cni_contrail.errors import Code, DamagedRecordError, PluginError
from cni_contrail.interfaces.fields import UUID
from cni_contrail.interfaces.names import alias, host_name
from cni_contrail.link.errors import LinkError
from cni_contrail.link.remove import HostLink, marked_links


def detach_unrecorded(request: Request) -> None:
    """Removes links that only a lost record can have told of, and has the agent told; raises `PluginError` (104)."""
    mark = alias(request.call.container_id, request.pod, "")
    kept = _recorded(request)
    lost = [link for link in _links(mark) if link.host_name not in kept and _is_of_call(request, link)]
    if not lost:
        return
    remove_host_links(request.node, lost)
    for link in lost:
        _have_agent_told(request, link.alias.removeprefix(mark))
    request.node.pending.send_some(request.node.agent)
    request.node.log.warning(f"detached {', '.join(link.host_name for link in lost)}, of which no record was left")


def _links(mark: str) -> list[HostLink]:
    try:
        return marked_links(mark)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def _is_of_call(request: Request, link: HostLink) -> bool:
    return request.is_thick or link.host_name == host_name(request.call.container_id, request.call.ifname)


def _recorded(request: Request) -> set[str]:
    """Host ends of the container's other attachments."""
    names: set[str] = set()
    for ifname in request.node.attachments.ifnames(request.call.container_id):
        with contextlib.suppress(DamagedRecordError):
            record = request.node.attachments.read(request.call.container_id, ifname)
            names.update(each.plan.host_name for each in (record.interfaces if record else ()))
    return names


def _have_agent_told(request: Request, interface: str) -> None:
    machine = request.pod.uid  # what our agent calls the VM; a stock one gets what it gets when the device is gone
    if UUID.fullmatch(machine) and UUID.fullmatch(interface):
        request.node.pending.keep(Notification(request.call.container_id, machine, interface, ""))
