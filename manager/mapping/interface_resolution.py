"""First half of the mapping: resolves a pod's annotations to its ordered list of interfaces, without addresses."""

from collections.abc import Sequence

import msgspec

from contrail_config.objects import FqName
from manager.configuration import ManagerConfiguration
from manager.mapping.catalogue import Catalogue, ServedNad
from manager.mapping.default_gateway import choose_default_gateways
from manager.mapping.errors import PodRefusedError
from manager.mapping.interface_names import attachment_names, reject_duplicate_names
from manager.mapping.interface_spec import InterfaceSpec
from manager.mapping.nad_resolution import check_isolation, find_nads, resolve_selection
from manager.mapping.overlap import overlaps
from manager.mapping.primary_network import resolve_primary
from manager.mapping.request_validation import validate_requests
from manager.parsing.errors import AnnotationError
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.networks import NETWORKS_KEY, parse_networks
from manager.reasons import Reason
from manager.source import Pod


class PodWarning(msgspec.Struct, frozen=True):
    """A warning about a pod that is served nevertheless."""

    reason: Reason
    message: str


class ResolvedInterfaces(msgspec.Struct, frozen=True):
    """All interfaces of a pod, index 0 first, and warnings for its owner."""

    interfaces: tuple[InterfaceSpec, ...]
    warnings: tuple[PodWarning, ...] = ()


def resolve_interfaces(
    pod: Pod, *, catalogue: Catalogue, configuration: ManagerConfiguration, fallback: FqName | None = None
) -> ResolvedInterfaces:
    """Returns the requested interfaces. Raises PodRefusedError and PodWaitsError.

    `fallback`: network of index 0 if the pod chooses none, instead of the namespace's or cluster's current choice.
    """
    attachments, foreign = _resolve_attachments(pod, catalogue=catalogue, configuration=configuration)
    primary = resolve_primary(pod, catalogue=catalogue, configuration=configuration, fallback=fallback)
    _check_isolated_networks(pod, [primary, *attachments])
    choice = choose_default_gateways(pod, [primary, *attachments], foreign=foreign)
    validate_requests(pod, choice.specs)
    return ResolvedInterfaces(tuple(choice.specs), _warnings(choice.specs, conflict=choice.conflict))


def _resolve_attachments(
    pod: Pod, *, catalogue: Catalogue, configuration: ManagerConfiguration
) -> tuple[list[InterfaceSpec], NetworkSelection | None]:
    """Returns index 1 and up: one per reference to a NAD of the Contrail plugin, in order.

    The second value is the reference to another plugin's NAD that has `default-route`, if any.
    """
    try:
        selections = parse_networks(
            pod.annotations.get(NETWORKS_KEY, ""), namespace=pod.namespace, defer_unsupported=True
        )
    except AnnotationError as error:
        raise PodRefusedError(Reason.ANNOTATION_INVALID, str(error)) from error
    # Checks that need no NAD come first: an invalid request is refused even while NADs are missing.
    check_isolation(selections, pod=pod, configuration=configuration, key=NETWORKS_KEY)
    meta_plugin = configuration.meta_plugin
    reject_duplicate_names(selections, meta_plugin, namespace=pod.namespace)
    nads = find_nads(selections, catalogue, configuration)
    # Names are numbered over all attachments before foreign ones are skipped, as Multus does.
    names = attachment_names(selections, default_networks=meta_plugin.default_networks_of(pod.namespace))
    specs: list[InterfaceSpec] = []
    foreign = None
    for selection, nad, name in zip(selections, nads, names, strict=True):
        if isinstance(nad, ServedNad):
            specs.append(resolve_selection(selection, nad, catalogue=catalogue, key=NETWORKS_KEY, attachment=name))
        elif selection.default_route is not None:
            foreign = selection
    return specs, foreign


def _check_isolated_networks(pod: Pod, specs: Sequence[InterfaceSpec]) -> None:
    """Raises PodRefusedError if the pod is not in the namespace to which a network is restricted."""
    for spec in specs:
        if spec.network.namespace not in (None, pod.namespace):
            problem = f"only pods of the isolated namespace {spec.network.namespace} can use it"
            raise PodRefusedError(Reason.NETWORK_FORBIDDEN, f"network {spec.network.name}: {problem}")


def _warnings(specs: Sequence[InterfaceSpec], *, conflict: str | None) -> tuple[PodWarning, ...]:
    warnings = [] if conflict is None else [PodWarning(Reason.DEFAULT_GATEWAY_CONFLICT, conflict)]
    if found := overlaps(spec.network for spec in specs):
        warnings.append(PodWarning(Reason.OVERLAPPING_NETWORKS, f"networks overlap: {'; '.join(found)}"))
    return tuple(warnings)
