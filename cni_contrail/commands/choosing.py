"""Which interfaces an ADD makes, and how they are called in the sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from cni_contrail.commands.request import Request
from cni_contrail.interfaces.names import sandbox_names
from cni_contrail.interfaces.selection import select_interface
from cni_contrail.interfaces.served import ServedInterface, ServedList
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.state.records import Record


class Chosen(NamedTuple):
    """Interfaces to make with their names; the first is the one that the runtime is told of.

    `primary_is_ours`: index 0 of the container is attached by this plugin, by this call or an earlier one.
    """

    interfaces: tuple[ServedInterface, ...]
    names: tuple[str, ...]
    primary_is_ours: bool


def choose(request: Request, served: ServedList, others: Sequence[Record], before: Record | None) -> Chosen:
    """Chooses from the pod's whole list; `others` are the container's other attachments.

    `before` is the record that this attachment had in an ADD that did not end.
    Raises `PluginError` with code 7 or 103, before anything is made.
    """
    ifname = request.call.ifname
    if request.is_thick:
        names = sandbox_names(served.interfaces, ifname)
        return Chosen(served.interfaces, tuple(names), primary_is_ours=True)
    selected = select_interface(
        served,
        {each.uuid: record.ifname for record in others for each in record.interfaces},
        network=request.config.name,
        ifname=ifname,
        settings=request.settings,
        before=before.interfaces[0].uuid if before else "",
    )
    primary_is_ours = selected.position == 0 or any(each.finished and each.holds_primary() for each in others)
    return Chosen((selected,), (ifname,), primary_is_ours)
