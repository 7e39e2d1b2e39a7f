"""DEL: removes an attachment. Nothing that is gone already is an error, and the agent need not be there.

The sandbox may be gone, the call may be repeated, ADD may have been killed at any moment, or never have run. What is
removed is what this container's own record says: a newer container of the same pod is never touched.
"""

from __future__ import annotations

from cni_contrail.agent.notifications import Notification
from cni_contrail.commands.detach import detach, remove_host_links
from cni_contrail.commands.request import Request, open_sandbox
from cni_contrail.commands.sweep import sweep
from cni_contrail.errors import Code, DamagedRecordError, PluginError
from cni_contrail.link.remove import HostLink
from cni_contrail.state.port_files import PortFile
from cni_contrail.state.records import Record


def delete(request: Request) -> None:
    """Carries out DEL; raises `PluginError`: 11 if another call holds the container, 104 if the kernel keeps a link."""
    _refuse_own_netns(request)
    call, node = request.call, request.node
    sweep(node, call.container_id)
    if not node.attachments.has_container(call.container_id):
        _delete_unrecorded(request)
        return
    with request.locked():
        record = _read_record(request)
        if record is None:
            _delete_unrecorded(request)
            return
        detach(node, record, sandbox=request.sandbox, notify=node.notify)
    node.log.info(f"detached {', '.join(each.plan.name for each in record.interfaces)}")


def _refuse_own_netns(request: Request) -> None:
    """A sandbox that is gone, or was never said, is no error here."""
    if not request.call.netns:
        return
    try:
        with open_sandbox(request):
            return
    except PluginError as error:
        if error.code == Code.OWN_NETNS:
            raise


def _read_record(request: Request) -> Record | None:
    call, attachments = request.call, request.node.attachments
    try:
        return attachments.read(call.container_id, call.ifname)
    except DamagedRecordError as error:
        attachments.set_aside(error, call.container_id, call.ifname)
        return None


def _delete_unrecorded(request: Request) -> None:
    from cni_contrail.commands.unrecorded import detach_unrecorded  # it is rarely needed

    detach_unrecorded(request)
    _delete_upstream(request)


def _delete_upstream(request: Request) -> None:
    """Removes what upstream's plugin made for this container, before this plugin took its place on the node.

    Its taps bear no alias, and it may have called an attachment otherwise than CNI_IFNAME; so the call for the pod's
    default network takes whatever is left.
    """
    call, node = request.call, request.node
    whole = request.is_thick or request.config.name == node.settings.network_name
    own = request.port_files.of_container(call.container_id)
    files = [file for file in own if whole or file.port.get("vm-ifname") == call.ifname]
    if not files:
        return
    remove_host_links(node, [HostLink(_upstream_tap(file), "") for file in files])
    request.port_files.remove(files)
    if request.port_files.are_gone():
        machine = files[0].port.get("vm-uuid", "")
        node.notify(Notification(call.container_id, machine, "", request.port_files.directory))
    node.log.info(f"detached {len(files)} interfaces that upstream's plugin had made")


def _upstream_tap(file: PortFile) -> str:
    """Upstream's name for the host end."""
    return "tap" + f"{file.port.get('vm-ifname')}-{file.port.get('vm-uuid')}"[:11]
