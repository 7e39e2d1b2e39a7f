"""Delegated mode: which of the pod's interfaces an attachment gets.

A meta plugin says the network's name and CNI_IFNAME, nothing else; the pod may join one network several times, and two
networks may bear one name. So an interface, once given, is held by its attachment until DEL.
"""

from collections.abc import Mapping, Sequence

from cni_contrail.errors import Code, PluginError
from cni_contrail.interfaces.served import ServedInterface, ServedList
from cni_contrail.settings import Settings


def select_interface(
    served: ServedList,
    held: Mapping[str, str],
    *,
    network: str,
    ifname: str,
    settings: Settings,
    before: str = "",
) -> ServedInterface:
    """The interface for attachment `ifname` to `network`; `held` maps uuids to the attachments that have them.

    `before` is the uuid of the one that this attachment had in an ADD that did not end: it keeps it.

    Raises `PluginError` with code 7 that names what there is to choose from, if the choice is none or not one.
    """
    fitting = [each for each in served.interfaces if _fits(each, served, network, settings)]
    candidates = [each for each in fitting if each.uuid not in held]
    if not candidates:
        raise _none_left(served, fitting, held, network)
    asked_by = "interface" if served.stock else "attachment"
    for each in candidates:
        if each.uuid == before:
            return each
    for each in candidates:
        if each.annotations.get(asked_by) == ifname:
            return each
    if len({_nad(each) for each in candidates}) == 1:
        return candidates[0]
    listed = ", ".join(map(str, candidates))
    raise PluginError(Code.INVALID_CONFIG, f"network {network}, attachment {ifname} fits several interfaces: {listed}")


def _fits(interface: ServedInterface, served: ServedList, network: str, settings: Settings) -> bool:
    if network == settings.network_name:
        return interface.position == 0
    if settings.nad:
        return interface.annotations.get("nad") == settings.nad
    return interface.annotations.get("network" if served.stock else "config-name") == network


def _nad(interface: ServedInterface) -> str | None:
    return interface.annotations.get("nad") or interface.annotations.get("network")


def _none_left(
    served: ServedList, fitting: Sequence[ServedInterface], held: Mapping[str, str], network: str
) -> PluginError:
    if fitting:
        taken = ", ".join(f"{each} by {held[each.uuid]}" for each in fitting)
        return PluginError(Code.INVALID_CONFIG, f"all interfaces of network {network} are held: {taken}")
    listed = ", ".join(map(str, served.interfaces))
    return PluginError(Code.INVALID_CONFIG, f"the pod has no interface in network {network}; it has {listed}")
