"""Selects the interfaces that an ADD creates, and their names in the sandbox."""

from __future__ import annotations

from cni_contrail.commands.request import Request
from cni_contrail.interfaces.names import sandbox_names
from cni_contrail.interfaces.selection import select_interface
from cni_contrail.interfaces.served import ServedInterface, ServedList
from cni_contrail.link.named_tuple import NamedTuple


class SelectedInterfaces(NamedTuple):
    """Interfaces to create and their names; the first one is reported to the runtime.

    `primary_is_ours`: interface 0 of the pod is attached by this plugin, in this call or an earlier one.
    """

    interfaces: tuple[ServedInterface, ...]
    names: tuple[str, ...]
    primary_is_ours: bool


def select_interfaces(request: Request, served: ServedList, previous_uuid: str) -> SelectedInterfaces:
    """Selects from the pod's whole list; `previous_uuid` is the interface that an unfinished ADD had, or empty.

    Raises `PluginError` with code 7 or 103, before anything is created.
    """
    ifname = request.call.ifname
    if request.is_thick:
        names = sandbox_names(served.interfaces, ifname)
        return SelectedInterfaces(served.interfaces, tuple(names), primary_is_ours=True)
    # An interface that another attachment of the container holds is not selected again.
    others = [
        each for each in request.node.attachments.of_container(request.call.container_id) if each.ifname != ifname
    ]
    selected = select_interface(
        served,
        {each.uuid: record.ifname for record in others for each in record.interfaces},
        network=request.config.name,
        ifname=ifname,
        settings=request.node.settings,
        previous=previous_uuid,
    )
    primary_is_ours = selected.position == 0 or any(each.finished and each.holds_primary() for each in others)
    return SelectedInterfaces((selected,), (ifname,), primary_is_ours)
