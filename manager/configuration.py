"""The manager's configuration: YAML, every key optional, checked whole at start.

The structs are the schema; what a type cannot say (CIDRs, addresses, what fits to what) is checked after it, and all
that is wrong comes in one message, each part with its key's path.
"""

import socket
from enum import StrEnum
from typing import Annotated

import msgspec

from contrail_config.objects import Route, Subnet
from contrail_service.configuration import load_configuration
from contrail_service.errors import ConfigurationError
from contrail_service.listen import parse_listen
from manager.parsing.addresses import parse_unicast
from manager.parsing.names import namespace_name
from manager.parsing.netconf import check_ipv6_mtu
from manager.parsing.routes import parse_routes
from manager.parsing.subnets import parse_subnets
from manager.parsing.validation import Setting, ValidationErrors

ClusterName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$", max_length=63)]
Mtu = Annotated[int, msgspec.Meta(ge=68, le=65535)]


class _Section(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """What all sections have in common."""


class RouteSettings(_Section, frozen=True):
    """A route: `dst` a CIDR, `gw` an address (absent: on the link)."""

    dst: str
    gw: str | None = None


class PodNetworkSettings(_Section, frozen=True):
    """The cluster pod network, in which every pod has index 0; `gateway` holds at most one address of each subnet."""

    subnets: tuple[str, ...] = ("10.32.0.0/12",)
    gateway: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    mtu: Mtu = 1500
    routes: tuple[RouteSettings, ...] = ()


class ManifestSourceSettings(_Section, frozen=True, tag_field="kind", tag="manifests"):
    """A folder of YAML and JSON manifests; whoever composes the process demands the path or brings it."""

    path: str | None = None


class KubernetesSourceSettings(_Section, frozen=True, tag_field="kind", tag="kubernetes"):
    """A cluster's API server. `lease_namespace`: where the lease is by which one of several managers writes."""

    kubeconfig: str | None = None
    lease_namespace: str = "kube-system"


class EmbeddedStoreSettings(_Section, frozen=True, tag_field="kind", tag="embedded"):
    """An SQLite file; whoever composes the process demands the path or brings it."""

    path: str | None = None


class KubernetesStoreSettings(_Section, frozen=True, tag_field="kind", tag="kubernetes"):
    """Custom resources in a cluster."""


class VncStoreSettings(_Section, frozen=True, tag_field="kind", tag="vnc"):
    """A Contrail API server."""

    url: str | None = None


class MetaPlugin(StrEnum):
    """Who calls the plugin: the runtime, once for all interfaces (none), or Multus, once for each."""

    NONE = "none"
    MULTUS = "multus"


class MetaPluginSettings(_Section, frozen=True):
    """What the manager must know of the configuration of Multus, to count a pod's attachments as it does.

    `default_networks`: number of its `defaultNetworks`, which come before a pod's own networks; `system_namespaces`:
    those whose pods do without them. `namespace`: where it looks for a default network that a pod names bare.
    """

    kind: MetaPlugin = MetaPlugin.NONE
    default_networks: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    system_namespaces: tuple[str, ...] = ("kube-system",)
    namespace: str = "kube-system"

    def default_networks_of(self, namespace: str) -> int:
        """Number of networks that each pod of the namespace is attached to before its own."""
        return 0 if namespace in self.system_namespaces else self.default_networks


class NamespaceIsolation(_Section, frozen=True):
    """Whether pods are kept to the networks of their own namespace and of the global ones."""

    enabled: bool = False
    global_namespaces: tuple[str, ...] = ("default",)


class ManagerConfiguration(_Section, frozen=True):
    """The whole file."""

    cluster_name: ClusterName = "k8s"
    node: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(default_factory=socket.gethostname)
    pod_network: PodNetworkSettings = PodNetworkSettings()
    source: ManifestSourceSettings | KubernetesSourceSettings = ManifestSourceSettings()
    store: EmbeddedStoreSettings | KubernetesStoreSettings | VncStoreSettings = EmbeddedStoreSettings()
    meta_plugin: MetaPluginSettings = MetaPluginSettings()
    namespace_isolation: NamespaceIsolation = NamespaceIsolation()
    listen: str = "127.0.0.1:8083"
    metrics_listen: str | None = None


class PodNetworkValues(msgspec.Struct, frozen=True):
    """What the section `pod-network` says, read."""

    subnets: tuple[Subnet, ...]
    dns: tuple[str, ...]
    routes: tuple[Route, ...]


def load_manager_configuration(path: str | None) -> ManagerConfiguration:
    """Returns what the file says, or the defaults without one. Raises ConfigurationError with all that is wrong."""
    configuration = ManagerConfiguration() if path is None else load_configuration(path, ManagerConfiguration)
    check_configuration(configuration, origin=path or "defaults")
    return configuration


def check_configuration(configuration: ManagerConfiguration, *, origin: str) -> None:
    """Raises ConfigurationError with all that is wrong; `origin` says where it stands."""
    errors = ValidationErrors()
    _note_unfit(errors, configuration)
    read_pod_network(errors, configuration.pod_network)
    if configuration.meta_plugin.kind is MetaPlugin.NONE and configuration.meta_plugin.default_networks:
        errors.add("meta-plugin.default-networks", "only a meta plugin has default networks")
    if isinstance(configuration.source, KubernetesSourceSettings):
        errors.parse("source.lease-namespace", namespace_name, configuration.source.lease_namespace)
    errors.parse("meta-plugin.namespace", namespace_name, configuration.meta_plugin.namespace)
    errors.parse_each("meta-plugin.system-namespaces", namespace_name, configuration.meta_plugin.system_namespaces)
    global_namespaces = configuration.namespace_isolation.global_namespaces
    errors.parse_each("namespace-isolation.global-namespaces", namespace_name, global_namespaces)
    if errors.problems:
        raise ConfigurationError(f"{origin}: {'; '.join(errors.problems)}")
    parse_listen(configuration.listen, key=f"{origin}: listen")
    if configuration.metrics_listen is not None:
        parse_listen(configuration.metrics_listen, key=f"{origin}: metrics-listen")


def read_pod_network(errors: ValidationErrors, settings: PodNetworkSettings) -> PodNetworkValues:
    """Returns the section's values. What is wrong goes to `findings`."""
    place = "pod-network"
    if not settings.subnets:
        errors.add(f"{place}.subnets", "one is needed at least")
    subnets = parse_subnets(
        errors,
        cidrs=Setting(f"{place}.subnets", settings.subnets),
        gateways=Setting(f"{place}.gateway", settings.gateway),
        excluded=Setting(f"{place}.exclude"),
    )
    if any(":" in subnet.cidr for subnet in subnets):
        errors.parse(f"{place}.mtu", check_ipv6_mtu, settings.mtu)
    return PodNetworkValues(
        subnets=subnets,
        dns=tuple(str(server) for server in errors.parse_each(f"{place}.dns", parse_unicast, settings.dns)),
        routes=parse_routes(errors, f"{place}.routes", msgspec.to_builtins(list(settings.routes)), subnets=subnets),
    )


def _note_unfit(errors: ValidationErrors, configuration: ManagerConfiguration) -> None:
    """Notes a store that is not supported, or does not go with the source."""
    in_cluster = isinstance(configuration.source, KubernetesSourceSettings)
    match configuration.store:
        case VncStoreSettings():
            errors.add("store.kind", "vnc is not supported yet")
        case EmbeddedStoreSettings() if in_cluster:
            errors.add(
                "store.kind", "embedded is read by no agent of a cluster: kubernetes is needed, as the source is"
            )
        case KubernetesStoreSettings() if not in_cluster:
            errors.add(
                "store.kind",
                "kubernetes goes with source.kind kubernetes alone: the machines of all pods that no manifest is of"
                " would be deleted",
            )
