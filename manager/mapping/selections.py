"""The NADs that a pod names: found, allowed, and turned into drafts.

Everything that is missing is told at once, so that a pod with three typos has one event and not three, one after the
other.
"""

from collections.abc import Sequence

from manager.configuration import ManagerConfiguration, MetaPlugin
from manager.dependencies import nad_dependency
from manager.mapping.catalogue import Catalogue, ForeignNad, ServedNad
from manager.mapping.draft import InterfaceDraft
from manager.mapping.errors import PodRefusedError, PodWaitsError
from manager.mapping.isolation import may_name
from manager.parsing.quoting import shown
from manager.parsing.selection import NetworkSelection
from manager.reasons import Reason
from manager.source import Pod


def check_selections(
    selections: Sequence[NetworkSelection], *, pod: Pod, configuration: ManagerConfiguration, key: str
) -> None:
    """Raises PodRefusedError if namespace isolation keeps the pod from one of the NADs; `key` is the annotation."""
    for selection in selections:
        if not may_name(configuration, own=pod.namespace, other=selection.namespace):
            problem = f"namespace isolation keeps pods of {pod.namespace} from NAD {selection.key}"
            raise PodRefusedError(Reason.NETWORK_FORBIDDEN, f"{key}: {problem}")


def find_nads(
    selections: Sequence[NetworkSelection], catalogue: Catalogue, configuration: ManagerConfiguration
) -> list[ServedNad | ForeignNad]:
    """The NADs in the order of the selections. Raises PodWaitsError with all that is missing."""
    found: list[ServedNad | ForeignNad] = []
    missing: dict[str, PodWaitsError] = {}
    for selection in selections:
        try:
            found.append(_find(selection.key, catalogue, configuration))
        except PodWaitsError as error:
            missing.setdefault(selection.key, error)
    if missing:
        errors = list(missing.values())
        needs = (need for error in errors for need in error.needs)
        raise PodWaitsError(errors[0].reason, "; ".join(map(str, errors)), *needs)
    return found


def draft_selection(
    selection: NetworkSelection, nad: ServedNad, *, catalogue: Catalogue, key: str, attachment: str | None = None
) -> InterfaceDraft:
    """The draft of one interface; `key` is the annotation. Raises PodRefusedError and PodWaitsError."""
    if selection.unserved:
        raise PodRefusedError(Reason.ANNOTATION_INVALID, f"{key}, {selection.key}: {selection.unserved[0]}")
    return InterfaceDraft(
        network=catalogue.network(nad.network),
        wishes=selection.ips,
        mac=selection.mac,
        default_route=selection.default_route,
        nad=selection.key,
        config_name=nad.config_name,
        interface=selection.interface,
        attachment=attachment,
    )


def _find(key: str, catalogue: Catalogue, configuration: ManagerConfiguration) -> ServedNad | ForeignNad:
    """The NAD, its network there. Raises PodWaitsError."""
    nad = catalogue.nad(key)
    if isinstance(nad, ServedNad):
        _need_network(key, nad, catalogue)
    elif configuration.meta_plugin.kind is MetaPlugin.NONE:
        plugin = f"of plugin {shown(nad.plugin)}" if nad.plugin else "of another plugin"
        message = f"network attachment definition {key} is {plugin}, and there is no meta plugin to call it"
        raise PodWaitsError(Reason.FOREIGN_NETWORK, message, nad_dependency(key))
    return nad


def _need_network(key: str, nad: ServedNad, catalogue: Catalogue) -> None:
    try:
        catalogue.network(nad.network)
    except PodWaitsError as error:
        message = f"network attachment definition {key}: {error}"
        raise PodWaitsError(error.reason, message, nad_dependency(key), *error.needs) from error
