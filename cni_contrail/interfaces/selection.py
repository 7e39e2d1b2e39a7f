"""Delegated mode: which of the pod's interfaces an attachment gets.

A meta plugin says the network's name and CNI_IFNAME, nothing else; the pod may join one network several times, and two
networks may bear one name. So an interface, once given, is held by its attachment until DEL.

What tells attachments apart is CNI_IFNAME, which the manager foresees by counting as the meta plugin does. If none is
as foreseen, the two count differently. Within one NAD that is no harm; where several NADs bear the name, those that are
held already may be the wrong ones as well, so that what remains says nothing.
"""

from collections.abc import Mapping, Sequence

from cni_contrail.errors import Code, PluginError
from cni_contrail.interfaces.served import ServedInterface, ServedList
from cni_contrail.settings import Settings

_PRIMARY = "eth0"  # what every runtime calls the first interface, and no pod can ask for


def select_interface(
    served: ServedList,
    held: Mapping[str, str],
    *,
    network: str,
    ifname: str,
    settings: Settings,
    previous: str = "",
) -> ServedInterface:
    """The interface for attachment `ifname` to `network`; `held` maps uuids to the attachments that have them.

    `before` is the uuid of the one that this attachment had in an ADD that did not end: it keeps it.

    Raises `PluginError` with code 7 that names what there is to choose from, if the choice is none or not one.
    """
    fitting = [each for each in served.interfaces if _fits(each, served, network, settings)]
    candidates = [each for each in fitting if each.uuid not in held]
    if not candidates:
        raise _none_left(served, fitting, held, nad=settings.nad, network=network)
    for each in candidates:
        if each.uuid == previous:
            return each
    for each in candidates:
        if _foreseen(each, served) == ifname:
            return each
    if len({_nad(each) for each in fitting}) == 1:
        return candidates[0]
    listed = ", ".join(f"{each} as {_foreseen(each, served)}" for each in fitting)
    chosen_by = f"NAD {settings.nad}" if settings.nad else f"network {network}"
    message = f"attachment {ifname} of {chosen_by} is none of those that are foreseen: {listed}"
    raise PluginError(Code.INVALID_CONFIG, message)


def _fits(interface: ServedInterface, served: ServedList, network: str, settings: Settings) -> bool:
    if network == settings.network_name and interface.position == 0:
        return True
    if settings.nad:
        return interface.annotations.get("nad") == settings.nad
    return interface.annotations.get("network" if served.vrouter_agent else "config-name") == network


def _foreseen(interface: ServedInterface, served: ServedList) -> str | None:
    """The CNI_IFNAME with which the interface shall be called for, None if nobody says."""
    asked_by = "interface" if served.vrouter_agent else "attachment"
    return interface.annotations.get(asked_by) or (_PRIMARY if interface.position == 0 else None)


def _nad(interface: ServedInterface) -> str | None:
    return interface.annotations.get("nad") or interface.annotations.get("network")


def _none_left(
    served: ServedList, fitting: Sequence[ServedInterface], held: Mapping[str, str], *, nad: str, network: str
) -> PluginError:
    if fitting:
        taken = ", ".join(f"{each} by {held[each.uuid]}" for each in fitting)
        chosen_by = f"NAD {nad}" if nad else f"network {network}"
        return PluginError(Code.INVALID_CONFIG, f"all interfaces of {chosen_by} are held: {taken}")
    listed = ", ".join(map(str, served.interfaces))
    place = f"of NAD {nad}" if nad else f"in network {network}"
    return PluginError(Code.INVALID_CONFIG, f"the pod has no interface {place}; it has {listed}")
