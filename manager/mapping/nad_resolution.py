"""Resolves the NADs that a pod names: finds them, checks isolation, and builds interface specs.

All missing NADs are reported at once, so a pod with three typos has one event instead of three in a row.
"""

from collections.abc import Sequence

from manager.configuration import ManagerConfiguration, MetaPlugin
from manager.dependencies import nad_dependency
from manager.mapping.catalogue import Catalogue, ForeignNad, ServedNad
from manager.mapping.errors import PodRefusedError, PodWaitsError
from manager.mapping.interface_spec import InterfaceSpec
from manager.mapping.isolation import may_use_nad
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.quoting import quoted
from manager.reasons import Reason
from manager.source import Pod


def check_isolation(
    selections: Sequence[NetworkSelection], *, pod: Pod, configuration: ManagerConfiguration, key: str
) -> None:
    """Raises PodRefusedError if namespace isolation forbids one of the NADs; `key` is the annotation."""
    for selection in selections:
        if not may_use_nad(configuration, own=pod.namespace, other=selection.namespace):
            problem = f"namespace isolation forbids pods of {pod.namespace} to use NAD {selection.key}"
            raise PodRefusedError(Reason.NETWORK_FORBIDDEN, f"{key}: {problem}")


def find_nads(
    selections: Sequence[NetworkSelection], catalogue: Catalogue, configuration: ManagerConfiguration
) -> list[ServedNad | ForeignNad]:
    """Returns the NADs in the order of the selections. Raises PodWaitsError, which names all missing ones."""
    found: list[ServedNad | ForeignNad] = []
    missing: dict[str, PodWaitsError] = {}
    for selection in selections:
        try:
            found.append(_find(selection.key, catalogue, configuration))
        except PodWaitsError as error:
            # A NAD that is referenced twice is reported once.
            missing.setdefault(selection.key, error)
    if missing:
        errors = list(missing.values())
        dependencies = (dependency for error in errors for dependency in error.dependencies)
        raise PodWaitsError(errors[0].reason, "; ".join(map(str, errors)), *dependencies)
    return found


def resolve_selection(
    selection: NetworkSelection, nad: ServedNad, *, catalogue: Catalogue, key: str, attachment: str | None = None
) -> InterfaceSpec:
    """Returns the spec of one interface; `key` is the annotation. Raises PodRefusedError and PodWaitsError."""
    # Only here is it known that the network is served by the Contrail plugin.
    if selection.unsupported:
        raise PodRefusedError(Reason.ANNOTATION_INVALID, f"{key}, {selection.key}: {selection.unsupported[0]}")
    return InterfaceSpec(
        network=catalogue.network(nad.network),
        requested_addresses=selection.ips,
        mac=selection.mac,
        default_route=selection.default_route,
        nad=selection.key,
        config_name=nad.config_name,
        interface=selection.interface,
        attachment=attachment,
    )


def _find(key: str, catalogue: Catalogue, configuration: ManagerConfiguration) -> ServedNad | ForeignNad:
    """Returns the NAD, whose network exists. Raises PodWaitsError."""
    nad = catalogue.nad(key)
    if isinstance(nad, ServedNad):
        _require_network(key, nad, catalogue)
    elif configuration.meta_plugin.kind is MetaPlugin.NONE:
        plugin = f"plugin {quoted(nad.plugin)}" if nad.plugin else "another plugin"
        message = f"network attachment definition {key} is of {plugin}, which needs a meta plugin"
        raise PodWaitsError(Reason.FOREIGN_NETWORK, message, nad_dependency(key))
    return nad


def _require_network(key: str, nad: ServedNad, catalogue: Catalogue) -> None:
    try:
        catalogue.network(nad.network)
    except PodWaitsError as error:
        # The pod also depends on the NAD: it may be changed to refer to another network.
        message = f"network attachment definition {key}: {error}"
        raise PodWaitsError(error.reason, message, nad_dependency(key), *error.dependencies) from error
