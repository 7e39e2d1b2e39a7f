"""Detaches an attachment by its record only: for DEL, GC and the sweep, and for ADDs that failed or were killed.

Every step is idempotent, and the record is removed last: if a call dies on the way, the next one continues.
"""

import os
from collections.abc import Callable

from cni_contrail.agent.notifications import Notification
from cni_contrail.commands.node import NodeServices
from cni_contrail.errors import Code, PluginError
from cni_contrail.link.defaults import restore_defaults
from cni_contrail.link.errors import LinkError, NetnsError
from cni_contrail.link.netns import netns_identity
from cni_contrail.link.netns_ids import netns_id_of
from cni_contrail.link.remove import HostLink, remove_links
from cni_contrail.quoting import cut
from cni_contrail.sandbox import Sandbox
from cni_contrail.state.records import Record

_UNKNOWN = -1  # sandbox_id of an ADD that did not finish


def detach(
    node: NodeServices, record: Record, *, sandbox: Sandbox | None, notify: Callable[[Notification], None]
) -> None:
    """Removes the links, cleans the sandbox, notifies the agent and removes the record.

    `sandbox` is None if the caller does not know it: the path in the record may name another sandbox by now. That of
    the runtime may do so too, so it is compared with the record.
    Raises `PluginError` with code 104 if the kernel keeps a link, 5 if the record cannot be removed; the record is
    still there then.
    """
    _mark_unfinished(node, record)
    if record.interfaces:
        _remove_links(node, record, sandbox)
        _clean_sandbox(node, record, sandbox)
    remove_record(node, record, notify=notify)


def remove_record(node: NodeServices, record: Record, *, notify: Callable[[Notification], None]) -> None:
    """Notifies the agent and removes the record; touches no link."""
    if record.interfaces:
        _release_ports(node, record, notify)
    node.attachments.remove(record)


def _remove_links(node: NodeServices, record: Record, sandbox: Sandbox | None) -> None:
    if record.is_nested:
        from cni_contrail.commands.nested import remove_links as remove_nested_links  # few nodes need it

        remove_nested_links(node, record)
    else:
        netns = _opened(sandbox) if record.in_networks else None
        try:
            remove_host_links(node, record.host_links(), netns)
        finally:
            if netns is not None:
                os.close(netns)


def _opened(sandbox: Sandbox | None) -> int | None:
    """Opens the sandbox; None if there is none any more."""
    try:
        return sandbox.open() if sandbox is not None and sandbox.path else None
    except NetnsError:
        return None


def remove_host_links(node: NodeServices, links: list[HostLink], sandbox: int | None = None) -> None:
    """Removes those that exist and have our alias; raises `PluginError` with code 104."""
    try:
        with node.phase("remove"):
            foreign = remove_links(links, netns_dir=node.settings.netns_dir, sandbox=sandbox)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error
    for name in foreign:
        node.log.warning(f"link {name}: kept, its alias is not that of this attachment")


def _mark_unfinished(node: NodeServices, record: Record) -> None:
    """If this call dies, the next ADD detaches the rest. Best effort: a full disk must not block the removal."""
    if record.finished:
        try:
            node.attachments.write(record._replace(finished=False))
        except PluginError as error:
            node.log.debug(error.message)


def _clean_sandbox(node: NodeServices, record: Record, sandbox: Sandbox | None) -> None:
    """Deletes rules, which outlive the links, and restores replaced default routes. Best effort."""
    plans = [each.plan for each in record.interfaces if each.plan.source_routing]
    if not (record.replaced or plans) or not sandbox or not sandbox.path:
        return
    try:
        netns = sandbox.open()
    except NetnsError as error:
        node.log.debug(f"sandbox not cleaned: {error}")
        return
    try:
        if not _is_sandbox_of(record, netns):
            node.log.warning(f"sandbox not cleaned: {cut(sandbox.path)} is another sandbox than that of ADD")
            return
        if plans:
            from cni_contrail.link.source_routing import remove_rules  # few pods need it

            remove_rules(netns, plans)
        if record.replaced:
            restore_defaults(netns, record.replaced)
    except LinkError as error:
        node.log.warning(f"sandbox not cleaned: {error}")
    finally:
        os.close(netns)


def _is_sandbox_of(record: Record, netns: int) -> bool:
    """Compares all that is known of it: the kernel uses inodes and IDs of namespaces that are gone again."""
    if record.sandbox_netns != netns_identity(netns):
        return False
    return record.sandbox_id in (_UNKNOWN, netns_id_of(netns))


def _release_ports(node: NodeServices, record: Record, notify: Callable[[Notification], None]) -> None:
    if record.is_nested:
        return  # no agent knows of it
    if record.vrouter_agent:
        files = node.port_files(record.vm_name)
        own = {each.uuid for each in record.interfaces}
        files.remove(each for each in files.of_container(record.container_id) if each.port.get("vmi-uuid") in own)
        if files.of_vm(record.vm_uuid):
            return  # a Contrail vrouter agent removes all ports of the VM at once: wait for the last one
        notification = Notification(record.container_id, record.vm_uuid, "", files.directory)
    else:
        interface = "" if record.thick else record.interfaces[0].uuid
        notification = Notification(record.container_id, record.vm_uuid, interface, "")
    notify(notification)
