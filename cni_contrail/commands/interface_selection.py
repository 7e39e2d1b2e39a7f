"""Which interfaces an ADD makes, and how they are called in the sandbox."""

from __future__ import annotations

from cni_contrail.commands.request import Request
from cni_contrail.interfaces.names import sandbox_names
from cni_contrail.interfaces.selection import select_interface
from cni_contrail.interfaces.served import ServedInterface, ServedList
from cni_contrail.link.named_tuple import NamedTuple


class SelectedInterfaces(NamedTuple):
    """Interfaces to make with their names; the first is the one that the runtime is told of.

    `primary_is_ours`: index 0 of the container is attached by this plugin, by this call or an earlier one.
    """

    interfaces: tuple[ServedInterface, ...]
    names: tuple[str, ...]
    primary_is_ours: bool


def select_interfaces(request: Request, served: ServedList, before: str) -> SelectedInterfaces:
    """Chooses from the pod's whole list; `before` is the interface that an ADD which did not end had, or empty.

    Raises `PluginError` with code 7 or 103, before anything is made.
    """
    ifname = request.call.ifname
    if request.is_thick:
        names = sandbox_names(served.interfaces, ifname)
        return SelectedInterfaces(served.interfaces, tuple(names), primary_is_ours=True)
    others = [
        each for each in request.node.attachments.of_container(request.call.container_id) if each.ifname != ifname
    ]
    selected = select_interface(
        served,
        {each.uuid: record.ifname for record in others for each in record.interfaces},
        network=request.config.name,
        ifname=ifname,
        settings=request.node.settings,
        before=before,
    )
    primary_is_ours = selected.position == 0 or any(each.finished and each.holds_primary() for each in others)
    return SelectedInterfaces((selected,), (ifname,), primary_is_ours)
