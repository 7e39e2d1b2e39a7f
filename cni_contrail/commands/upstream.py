"""Detaches interfaces that only port files describe.

The upstream plugin attached them before this one replaced it on the node, or this plugin has lost their record. The
file selects the link to remove, and an agent writes files for whoever can post to it. So a file counts only if a
plugin wrote it, and its `host-ifname` is the one that the plugins derive from the other values of the file.

In nested mode `host-ifname` is the parent interface, which stays. The upstream plugin's macvlans go with the sandbox,
and its VLAN links, which have our alias, when nothing uses them any more (`link.vlan_links`).
"""

from __future__ import annotations

import os
import re

from cni_contrail.agent.notifications import Notification
from cni_contrail.commands.detach import remove_host_links
from cni_contrail.commands.request import Request
from cni_contrail.errors import PluginError
from cni_contrail.interfaces.fields import UUID
from cni_contrail.interfaces.names import host_name
from cni_contrail.link.remove import HostLink
from cni_contrail.state.files import make_searchable, remove_if_exists
from cni_contrail.state.port_files import PortFile

# ASCII, since upstream counts bytes, and without what the kernel rejects or expands ("eth%d") in a name.
_LINK_NAME = re.compile(r"[!-~]{1,15}", re.ASCII)
_INVALID_IN_LINK_NAME = frozenset("/:%")


def detach_by_port_files(request: Request) -> None:
    """Removes the container's interfaces that port files describe, and notifies the agent; raises `PluginError` (104).

    Upstream's taps have no alias, and their interface name may differ from CNI_IFNAME. So DEL of the pod's default
    network removes all of them that are left.
    """
    call, node = request.call, request.node
    parent = node.settings.nested_parent
    everything = request.is_thick or request.config.name == node.settings.network_name
    own = [file for file in request.port_files.of_container(call.container_id) if _is_consistent(file, parent)]
    files = [file for file in own if everything or file.port["vm-ifname"] == call.ifname]
    if not files:
        return
    if not parent:
        remove_host_links(node, [HostLink(file.port["host-ifname"], "") for file in files])
    request.port_files.remove(files)
    for vm_uuid in sorted({file.port["vm-uuid"] for file in files}):
        if not parent and not request.port_files.of_vm(vm_uuid):  # in nested mode the agent never knew of them
            node.notify(Notification(call.container_id, vm_uuid, "", request.port_files.directory))
    if not request.port_files.all():
        _remove_list_cache(request)
    node.log.info(f"detached {len(files)} interfaces that only port files described")


def _remove_list_cache(request: Request) -> None:
    """Removes the pod's list that upstream keeps under Multus: it would serve it to the next pod of the name.

    Best effort: no later call needs it.
    """
    directory = os.path.join(os.path.dirname(request.node.settings.config_dir), "multus")
    make_searchable(directory)
    try:
        remove_if_exists(os.path.join(directory, request.virtual_machine_name))
    except PluginError as error:
        request.node.log.warning(error.message)


def upstream_tap(ifname: str, vm_uuid: str) -> str:
    """Returns upstream's name of the host end."""
    return "tap" + f"{ifname}-{vm_uuid}"[:11]


def _is_consistent(file: PortFile, parent: str) -> bool:
    ifname, vm_uuid = file.port.get("vm-ifname", ""), file.port.get("vm-uuid", "")
    if not _LINK_NAME.fullmatch(ifname) or not _INVALID_IN_LINK_NAME.isdisjoint(ifname) or not UUID.fullmatch(vm_uuid):
        return False
    if parent:
        return file.port.get("host-ifname") == parent
    return file.port.get("host-ifname") in (upstream_tap(ifname, vm_uuid), host_name(file.port["vm-id"], ifname))
