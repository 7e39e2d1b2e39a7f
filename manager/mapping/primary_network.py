"""Network of a pod's index 0: the cluster pod network, unless the pod or its namespace chooses another one.

Order of precedence: Multus's `v1.multus-cni.io/default-network` on the pod, if it names a NAD of the Contrail plugin;
the pod's `opencontrail.org/network`; that of its namespace; the pod network of its namespace if that is isolated; the
cluster pod network. If the pod has both annotations, they must
agree. Under a meta plugin, a default network of another plugin is left to that plugin and does not change index 0.
"""

from contrail_config.objects import FqName, VirtualNetwork
from manager.configuration import ManagerConfiguration, MetaPlugin
from manager.dependencies import namespace_dependency, network_dependency
from manager.mapping.annotations import DEFAULT_NETWORK_KEY
from manager.mapping.catalogue import Catalogue, ServedNad
from manager.mapping.errors import PodRefusedError, PodWaitsError
from manager.mapping.fq_names import isolated_network_name, pod_network_name
from manager.mapping.interface_spec import InterfaceSpec
from manager.mapping.isolation import may_use_network
from manager.mapping.nad_resolution import check_isolation, find_nads, resolve_selection
from manager.mapping.unsatisfiable import unsatisfiable
from manager.parsing.errors import AnnotationError
from manager.parsing.namespace_settings import parse_namespace_settings
from manager.parsing.network_reference import NETWORK_KEY, parse_network_annotation
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.networks import NETWORKS_KEY, parse_networks
from manager.parsing.quoting import quoted
from manager.reasons import Reason
from manager.source import Pod


def resolve_primary(
    pod: Pod, *, catalogue: Catalogue, configuration: ManagerConfiguration, fallback: FqName | None
) -> InterfaceSpec:
    """Returns index 0, in `fallback` if it is given and the pod chooses no network.

    Raises PodRefusedError and PodWaitsError.
    """
    chosen = _network_of_pod(pod, configuration)
    spec = _default_network(pod, catalogue, configuration)
    if spec is None:
        name = chosen or fallback or _network_of_others(pod, catalogue, configuration)
        network = catalogue.network(name)
        if chosen is None and fallback is None:
            _require_own(pod, network, catalogue, configuration)
        return InterfaceSpec(network=network, chosen_by_pod=chosen is not None)
    if chosen not in (None, spec.network.fq_name):
        problem = f"chooses network {spec.network.name} for index 0, but {NETWORK_KEY} chooses another one"
        message = f"{DEFAULT_NETWORK_KEY}: {quoted(pod.annotations[DEFAULT_NETWORK_KEY])} {problem}"
        raise unsatisfiable(Reason.ANNOTATION_INVALID, message, spec, pod=pod)
    return spec


def network_name(pod: Pod, catalogue: Catalogue, configuration: ManagerConfiguration) -> FqName:
    """Returns the network of index 0 that the pod, its namespace or the cluster chooses, whether or not it exists.

    Raises PodRefusedError and PodWaitsError.
    """
    return _network_of_pod(pod, configuration) or _network_of_others(pod, catalogue, configuration)


def _default_network(pod: Pod, catalogue: Catalogue, configuration: ManagerConfiguration) -> InterfaceSpec | None:
    """Returns index 0 in the NAD that Multus's annotation names; None if it names none of the Contrail plugin."""
    selections = default_network_selections(pod, configuration)
    check_isolation(selections, pod=pod, configuration=configuration, key=DEFAULT_NETWORK_KEY)
    for selection, nad in zip(selections, find_nads(selections, catalogue, configuration), strict=True):
        if isinstance(nad, ServedNad):
            return resolve_selection(selection, nad, catalogue=catalogue, key=DEFAULT_NETWORK_KEY)
    return None


def default_network_selections(pod: Pod, configuration: ManagerConfiguration) -> tuple[NetworkSelection, ...]:
    """Returns what Multus's annotation names: one NAD or none. Raises PodRefusedError."""
    text = pod.annotations.get(DEFAULT_NETWORK_KEY, "")
    # Multus looks up a name without a namespace in its own namespace.
    under_multus = configuration.meta_plugin.kind is MetaPlugin.MULTUS
    namespace = configuration.meta_plugin.namespace if under_multus else pod.namespace
    try:
        selections = parse_networks(text, namespace=namespace, defer_unsupported=True)
    except AnnotationError as error:
        # The parser puts its own annotation key first.
        raise _invalid(DEFAULT_NETWORK_KEY + str(error).removeprefix(NETWORKS_KEY)) from error
    if len(selections) > 1:
        raise _invalid(f"{DEFAULT_NETWORK_KEY}: {quoted(text)} names {len(selections)} networks: index 0 has one")
    if selections and selections[0].interface is not None:
        problem = f"interface {selections[0].interface!r} is not supported: the container runtime names index 0"
        raise _invalid(f"{DEFAULT_NETWORK_KEY}: {problem}")
    return selections


def _network_of_pod(pod: Pod, configuration: ManagerConfiguration) -> FqName | None:
    if NETWORK_KEY not in pod.annotations:
        return None
    try:
        name = parse_network_annotation(pod.annotations[NETWORK_KEY])
    except AnnotationError as error:
        raise _invalid(str(error)) from error
    if not may_use_network(configuration, own=pod.namespace, network=name):
        problem = f"namespace isolation forbids pods of {pod.namespace} to use network {':'.join(name)}"
        raise PodRefusedError(Reason.NETWORK_FORBIDDEN, f"{NETWORK_KEY}: {problem}")
    return name


def _network_of_others(pod: Pod, catalogue: Catalogue, configuration: ManagerConfiguration) -> FqName:
    return _network_of_namespace(pod, catalogue, configuration) or pod_network_name(configuration.cluster_name)


def _network_of_namespace(pod: Pod, catalogue: Catalogue, configuration: ManagerConfiguration) -> FqName | None:
    annotations = catalogue.namespaces.get(pod.namespace)
    if annotations is None:
        return None
    try:
        if NETWORK_KEY in annotations:
            return parse_network_annotation(annotations[NETWORK_KEY])
        isolated = parse_namespace_settings(annotations).isolated
        return isolated_network_name(configuration.cluster_name, pod.namespace) if isolated else None
    except AnnotationError as error:
        # The pod itself is valid, so it waits for the namespace.
        message = f"namespace {pod.namespace}, {error}"
        raise PodWaitsError(Reason.ANNOTATION_INVALID, message, namespace_dependency(pod.namespace)) from error


def _require_own(pod: Pod, network: VirtualNetwork, catalogue: Catalogue, configuration: ManagerConfiguration) -> None:
    """Raises PodWaitsError if the network has the name of the isolated namespace's, but somebody else created it."""
    own = isolated_network_name(configuration.cluster_name, pod.namespace)
    if network.fq_name != own or network.namespace is not None or own == pod_network_name(configuration.cluster_name):
        return
    if NETWORK_KEY not in catalogue.namespaces.get(pod.namespace, {}):
        creator = f"NAD {network.nad}" if network.nad else "somebody else"
        message = f"network {network.name} of the isolated namespace {pod.namespace} was created by {creator}"
        raise PodWaitsError(Reason.NETWORK_UNUSABLE, message, network_dependency(network.fq_name))


def _invalid(message: str) -> PodRefusedError:
    return PodRefusedError(Reason.ANNOTATION_INVALID, message)
