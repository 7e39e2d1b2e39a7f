"""Interface selection in delegated mode: which of the pod's interfaces an attachment gets.

A meta plugin passes only the network's name and CNI_IFNAME; the pod may join one network several times, and two
networks may have the same name. So an attachment holds its interface until DEL.

CNI_IFNAME tells attachments apart: the manager predicts it by counting as the meta plugin does. If no prediction
matches, the two count differently. Within one NAD that is harmless. Where several NADs have the name, earlier claims
may be wrong too, so elimination proves nothing, and the call is rejected.
"""

from collections.abc import Mapping, Sequence

from cni_contrail.errors import Code, PluginError
from cni_contrail.interfaces.served import ServedInterface, ServedList
from cni_contrail.quoting import cut, listed
from cni_contrail.settings import Settings

_PRIMARY = "eth0"  # the name that every runtime uses for the first interface; pods cannot request it


def select_interface(
    served: ServedList,
    held: Mapping[str, str],
    *,
    network: str,
    ifname: str,
    settings: Settings,
    previous: str = "",
) -> ServedInterface:
    """Returns the interface for attachment `ifname` to `network`; `held` maps uuids to the attachments that hold them.

    `previous` is the uuid that an unfinished ADD of this attachment had selected; it is selected again.

    Raises `PluginError` with code 7, naming the candidates, if no interface or more than one may be meant.
    """
    fitting = [each for each in served.interfaces if _fits(each, served, network, settings)]
    candidates = [each for each in fitting if each.uuid not in held]
    if not candidates:
        raise _no_candidate(served, fitting, held, nad=settings.nad, network=network)
    # A retried ADD keeps its interface: another one would have another MAC and address.
    for each in candidates:
        if each.uuid == previous:
            return each
    for each in candidates:
        if _expected_ifname(each, served) == ifname:
            return each
    # All fitting interfaces are of one NAD, so they are interchangeable.
    if len({_nad(each) for each in fitting}) == 1:
        return candidates[0]
    expected = listed([f"{each} as {_expected_ifname(each, served)}" for each in fitting])
    target = f"NAD {settings.nad}" if settings.nad else f"network {cut(network)}"
    message = f"attachment {ifname} of {target} is not expected; expected: {expected}"
    raise PluginError(Code.INVALID_CONFIG, message)


def _fits(interface: ServedInterface, served: ServedList, network: str, settings: Settings) -> bool:
    if network == settings.network_name and interface.position == 0:
        return True
    if settings.nad:
        return interface.annotations.get("nad") == settings.nad
    return interface.annotations.get("network" if served.vrouter_agent else "config-name") == network


def _expected_ifname(interface: ServedInterface, served: ServedList) -> str | None:
    """Returns the CNI_IFNAME that the attachment of the interface should have, None if it is unknown."""
    key = "interface" if served.vrouter_agent else "attachment"
    return interface.annotations.get(key) or (_PRIMARY if interface.position == 0 else None)


def _nad(interface: ServedInterface) -> str | None:
    return interface.annotations.get("nad") or interface.annotations.get("network")


def _no_candidate(
    served: ServedList, fitting: Sequence[ServedInterface], held: Mapping[str, str], *, nad: str, network: str
) -> PluginError:
    if fitting:
        taken = listed([f"{each} by {held[each.uuid]}" for each in fitting])
        target = f"NAD {nad}" if nad else f"network {cut(network)}"
        return PluginError(Code.INVALID_CONFIG, f"all interfaces of {target} are taken: {taken}")
    has = listed([str(each) for each in served.interfaces])
    place = f"of NAD {nad}" if nad else f"in network {cut(network)}"
    return PluginError(Code.INVALID_CONFIG, f"the pod has no interface {place}; it has {has}")
