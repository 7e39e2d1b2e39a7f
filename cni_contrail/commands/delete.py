"""DEL: removes an attachment. Idempotent: a missing object is not an error. No agent is required.

The sandbox may be gone; the call may be repeated; ADD may have been killed at any moment or never have run. DEL removes
only what this container's own record names: a newer container of the same pod is never touched.
"""

from __future__ import annotations

from cni_contrail.commands.detach import detach
from cni_contrail.commands.request import OpenSandbox, Request
from cni_contrail.commands.sweep import sweep
from cni_contrail.errors import Code, DamagedRecordError, PluginError
from cni_contrail.sandbox import Sandbox
from cni_contrail.state.records import Record


def delete(request: Request) -> None:
    """Runs DEL; raises `PluginError`: 11 if another call holds the container, 104 if the kernel keeps a link.

    Raises code 8 if CNI_NETNS is the plugin's own network namespace, after everything is removed, as the reference
    library does: a wrong path must not keep an attachment forever. In that namespace only links with the alias of the
    container are removed.
    """
    own_netns = _own_netns_error(request)
    _delete(request, None if own_netns else request.sandbox)
    if own_netns:
        raise own_netns


def _delete(request: Request, sandbox: Sandbox | None) -> None:
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
        detach(node, record, sandbox=sandbox, notify=node.notify)
    node.log.info(f"detached {', '.join(each.plan.name for each in record.interfaces)}")


def _own_netns_error(request: Request) -> PluginError | None:
    """Returns the error of a sandbox that is the plugin's own; in DEL, a missing or unnamed one is not an error."""
    if not request.call.netns:
        return None
    try:
        with OpenSandbox(request):
            return None
    except PluginError as error:
        return error if error.code == Code.OWN_NETNS else None


def _read_record(request: Request) -> Record | None:
    call, attachments = request.call, request.node.attachments
    try:
        return attachments.read(call.container_id, call.ifname)
    except DamagedRecordError as error:
        # A damaged record must not block DEL: it is kept aside, and the links are found by their aliases.
        attachments.quarantine(error, call.container_id, call.ifname)
        return None


def _delete_unrecorded(request: Request) -> None:
    # Rarely needed.
    from cni_contrail.commands.unrecorded import detach_unrecorded
    from cni_contrail.commands.upstream import detach_by_port_files

    detach_unrecorded(request)
    detach_by_port_files(request)
