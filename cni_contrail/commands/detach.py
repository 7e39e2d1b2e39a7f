"""Taking an attachment down by its record alone: what DEL does, and ADD with what failed or was killed half-way.

Every step can be done again, and the record goes last: a call that dies on the way is continued by the next one.
"""

import os
from collections.abc import Callable

from cni_contrail.agent.notifications import Notification
from cni_contrail.commands.node import Node
from cni_contrail.errors import Code, PluginError
from cni_contrail.link.defaults import restore_defaults
from cni_contrail.link.errors import LinkError, NetnsError
from cni_contrail.link.remove import HostLink, remove_links
from cni_contrail.sandbox import Sandbox
from cni_contrail.state.port_files import PortFiles
from cni_contrail.state.records import Record


def detach(node: Node, record: Record, *, sandbox: Sandbox | None, notify: Callable[[Notification], None]) -> None:
    """Removes links, puts replaced default routes back, has the agent told, forgets the record.

    `sandbox` is None if the caller does not know it: at the path in the record there may be somebody else's by now.
    Raises `PluginError` with code 104 if the kernel keeps a link, 5 if the record cannot be
    removed; it is still there then.
    """
    _mark_unfinished(node, record)
    if record.interfaces:
        remove_host_links(node, [HostLink(each.plan.host_name, each.plan.alias) for each in record.interfaces])
        _restore_defaults(node, record, sandbox)
    remove_record(node, record, notify=notify)


def remove_record(node: Node, record: Record, *, notify: Callable[[Notification], None]) -> None:
    """Has the agent told and forgets the record, as `take_down` does; no link is touched."""
    if record.interfaces:
        _release_ports(node, record, notify)
    node.attachments.remove(record)


def _mark_unfinished(node: Node, record: Record) -> None:
    """So that an ADD which comes after a call that died here continues it; a full disk keeps nothing from going."""
    if record.finished:
        try:
            node.attachments.write(record._replace(finished=False))
        except PluginError as error:
            node.log.debug(error.message)


def remove_host_links(node: Node, links: list[HostLink]) -> None:
    """Removes those that are there and ours; raises `PluginError` with code 104."""
    try:
        with node.phase("remove"):
            foreign = remove_links(links)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error
    for name in foreign:
        node.log.warning(f"link {name} bears another one's alias: it is left")


def _restore_defaults(node: Node, record: Record, sandbox: Sandbox | None) -> None:
    if not record.replaced or not sandbox or not sandbox.path:
        return
    try:
        netns = sandbox.open()
    except NetnsError as error:
        node.log.debug(f"default routes are not put back: {error}")
        return
    try:
        restore_defaults(netns, record.replaced)
    except LinkError as error:
        node.log.warning(f"default routes are not put back: {error}")
    finally:
        os.close(netns)


def _release_ports(node: Node, record: Record, notify: Callable[[Notification], None]) -> None:
    if record.stock:
        files = PortFiles(node.settings.config_dir, record.machine_name)
        own = {each.uuid for each in record.interfaces}
        files.remove(each for each in files.of_container(record.container_id) if each.port.get("vmi-uuid") in own)
        if not files.are_gone():
            return  # a stock agent forgets all ports of the VM at once
        notification = Notification(record.container_id, record.machine, "", files.directory)
    else:
        interface = "" if record.thick else record.interfaces[0].uuid
        notification = Notification(record.container_id, record.machine, interface, "")
    notify(notification)
