"""The manager's configuration file: YAML, every key optional, validated as a whole at start.

The structs are the schema. What a type cannot express (CIDRs, addresses, combinations) is validated after decoding, and
one message reports all problems, each with the path of its key.
"""

import re
import socket
from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec

from contrail_config.objects import Route, Subnet
from contrail_config.vnc.settings import VncSettings, setting_problems
from contrail_service.configuration import load_configuration
from contrail_service.errors import ConfigurationError
from contrail_service.listen import parse_listen
from manager.parsing.addresses import parse_unicast
from manager.parsing.label_selector import label_selector
from manager.parsing.names import namespace_name
from manager.parsing.netconf import check_ipv6_mtu
from manager.parsing.routes import parse_routes
from manager.parsing.subnets import parse_subnets
from manager.parsing.validation import Setting, ValidationErrors
from manager.web.host_names import host_name_pattern

ClusterName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$", max_length=63)]
Mtu = Annotated[int, msgspec.Meta(ge=68, le=65535)]
AUTO: Final = "auto"
"""In place of an MTU: the longest that fits the tunnels between nodes; `WITHOUT_TUNNELS` while there are none."""

_PROJECT: Final = re.compile(r"[^:]+:[^:]+")
"""Domain and name of a project."""

WITHOUT_TUNNELS: Final = 1500
"""MTU while networks end at each node."""


class _Section(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Base of all sections."""


class RouteSettings(_Section, frozen=True):
    """A route: `dst` is a CIDR, `gw` an address (absent: on-link)."""

    dst: str
    gw: str | None = None


class PodNetworkSettings(_Section, frozen=True):
    """The cluster pod network, which every pod has at index 0; `gateway` has at most one address per subnet.

    `mtu` is also that of other networks for which none is configured.
    """

    subnets: tuple[str, ...] = ("10.32.0.0/12",)
    gateway: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    mtu: Mtu | Literal["auto"] = AUTO
    routes: tuple[RouteSettings, ...] = ()


class ManifestSourceSettings(_Section, frozen=True, tag_field="kind", tag="manifests"):
    """A folder of YAML and JSON manifests; the process requires `path` or supplies it."""

    path: str | None = None


class KubernetesSourceSettings(_Section, frozen=True, tag_field="kind", tag="kubernetes"):
    """A cluster's API server. `lease_namespace`: namespace of the lease by which managers elect their leader.

    `node_selector`: label selector of the nodes that have an agent; None: all nodes.
    """

    kubeconfig: str | None = None
    lease_namespace: str = "kube-system"
    node_selector: str | None = None


class EmbeddedStoreSettings(_Section, frozen=True, tag_field="kind", tag="embedded"):
    """An SQLite file; the process requires `path` or supplies it."""

    path: str | None = None


class KubernetesStoreSettings(_Section, frozen=True, tag_field="kind", tag="kubernetes"):
    """Custom resources in a cluster."""


class ContrailStoreSettings(VncSettings, frozen=True, tag_field="kind", tag="vnc"):
    """A Contrail API server. `take_over`: pods and networks that another program wrote for the cluster are kept.

    `projects` (`domain:project`): NADs, pods and namespaces may name their networks.
    """

    take_over: bool = False
    projects: tuple[str, ...] = ()

    @property
    def named_projects(self) -> tuple[tuple[str, str], ...]:
        """Domain and name of each of the projects."""
        return tuple((domain, name) for domain, _, name in (each.partition(":") for each in self.projects))


class MetaPlugin(StrEnum):
    """Caller of the plugin: the runtime, once for all interfaces (none), or Multus, once per interface."""

    NONE = "none"
    MULTUS = "multus"


class MetaPluginSettings(_Section, frozen=True):
    """The part of Multus' configuration that the manager needs to number a pod's attachments as Multus does.

    `default_networks`: number of its `defaultNetworks`, which precede a pod's own networks, except in
    `system_namespaces`. `namespace`: where it resolves a default network that a pod names without a namespace.
    """

    kind: MetaPlugin = MetaPlugin.NONE
    default_networks: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    system_namespaces: tuple[str, ...] = ("kube-system",)
    namespace: str = "kube-system"

    def default_networks_of(self, namespace: str) -> int:
        """Returns the number of networks that precede the own networks of each pod in the namespace."""
        return 0 if namespace in self.system_namespaces else self.default_networks


class NamespaceIsolation(_Section, frozen=True):
    """Whether pods may use only networks of their own namespace and of the global namespaces."""

    enabled: bool = False
    global_namespaces: tuple[str, ...] = ("default",)


class ApiAccessSettings(_Section, frozen=True):
    """Who may read the API: by which host names, and with the token in `token_file` if that is set."""

    allowed_hosts: tuple[str, ...] = ()
    token_file: str | None = None


class ManagerConfiguration(_Section, frozen=True):
    """The whole configuration file."""

    cluster_name: ClusterName = "k8s"
    node: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(default_factory=socket.gethostname)
    pod_network: PodNetworkSettings = PodNetworkSettings()
    source: ManifestSourceSettings | KubernetesSourceSettings = ManifestSourceSettings()
    store: EmbeddedStoreSettings | KubernetesStoreSettings | ContrailStoreSettings = EmbeddedStoreSettings()
    meta_plugin: MetaPluginSettings = MetaPluginSettings()
    namespace_isolation: NamespaceIsolation = NamespaceIsolation()
    network_slices: bool = False
    l3_beyond_nodes: Annotated[int, msgspec.Meta(ge=0)] = 64  # 0: never
    listen: str = "127.0.0.1:8083"
    metrics_listen: str | None = None
    web_page: bool = True
    api_access: ApiAccessSettings = ApiAccessSettings()

    @property
    def store_kind(self) -> str:
        """`store.kind`: embedded, kubernetes or vnc."""
        return str(self.store.__struct_config__.tag)

    @property
    def network_mtu(self) -> int | None:
        """The MTU of networks for which none is configured; None if it is what the nodes measure."""
        if isinstance(self.pod_network.mtu, int):
            return self.pod_network.mtu
        return None if self.network_slices else WITHOUT_TUNNELS


class PodNetworkValues(msgspec.Struct, frozen=True):
    """The parsed values of section `pod-network`."""

    subnets: tuple[Subnet, ...]
    dns: tuple[str, ...]
    routes: tuple[Route, ...]


def load_manager_configuration(path: str | None) -> ManagerConfiguration:
    """Returns the configuration of the file, or the defaults without one. Raises ConfigurationError, see below."""
    configuration = ManagerConfiguration() if path is None else load_configuration(path, ManagerConfiguration)
    check_configuration(configuration, origin=path or "defaults")
    return configuration


def check_configuration(configuration: ManagerConfiguration, *, origin: str) -> None:
    """Raises ConfigurationError with all problems; the message starts with `origin`."""
    errors = ValidationErrors()
    _check_store(errors, configuration)
    read_pod_network(errors, configuration.pod_network)
    if configuration.meta_plugin.kind is MetaPlugin.NONE and configuration.meta_plugin.default_networks:
        errors.add("meta-plugin.default-networks", "needs a meta plugin: meta-plugin.kind is none")
    if configuration.network_slices and not isinstance(configuration.store, KubernetesStoreSettings):
        errors.add("network-slices", "needs store.kind kubernetes: with vnc agents derive them")
    if isinstance(configuration.source, KubernetesSourceSettings):
        errors.parse("source.lease-namespace", namespace_name, configuration.source.lease_namespace)
        if configuration.source.node_selector is not None:
            errors.parse("source.node-selector", label_selector, configuration.source.node_selector)
    errors.parse("meta-plugin.namespace", namespace_name, configuration.meta_plugin.namespace)
    errors.parse_each("meta-plugin.system-namespaces", namespace_name, configuration.meta_plugin.system_namespaces)
    global_namespaces = configuration.namespace_isolation.global_namespaces
    errors.parse_each("namespace-isolation.global-namespaces", namespace_name, global_namespaces)
    errors.parse_each("api-access.allowed-hosts", host_name_pattern, configuration.api_access.allowed_hosts)
    if errors.problems:
        raise ConfigurationError(f"{origin}: {'; '.join(errors.problems)}")
    parse_listen(configuration.listen, key=f"{origin}: listen")
    if configuration.metrics_listen is not None:
        parse_listen(configuration.metrics_listen, key=f"{origin}: metrics-listen")


def read_pod_network(errors: ValidationErrors, settings: PodNetworkSettings) -> PodNetworkValues:
    """Returns the section's values, and adds its problems to `errors`."""
    path = "pod-network"
    if not settings.subnets:
        errors.add(f"{path}.subnets", "at least one is required")
    subnets = parse_subnets(
        errors,
        cidrs=Setting(f"{path}.subnets", settings.subnets),
        gateways=Setting(f"{path}.gateway", settings.gateway),
        excluded=Setting(f"{path}.exclude"),
    )
    if isinstance(settings.mtu, int) and any(":" in subnet.cidr for subnet in subnets):
        errors.parse(f"{path}.mtu", check_ipv6_mtu, settings.mtu)
    return PodNetworkValues(
        subnets=subnets,
        dns=tuple(str(server) for server in errors.parse_each(f"{path}.dns", parse_unicast, settings.dns)),
        routes=parse_routes(errors, f"{path}.routes", msgspec.to_builtins(list(settings.routes)), subnets=subnets),
    )


def _check_store(errors: ValidationErrors, configuration: ManagerConfiguration) -> None:
    """Adds a problem if the store is not supported, or not with this source."""
    in_cluster = isinstance(configuration.source, KubernetesSourceSettings)
    match configuration.store:
        case ContrailStoreSettings() as settings:
            for key, problem in setting_problems(settings):
                errors.add(f"store.{key}", problem)
            for project in settings.projects:
                if not _PROJECT.fullmatch(project):
                    errors.add("store.projects", f"{project!r} is not DOMAIN:PROJECT")
        case EmbeddedStoreSettings() if in_cluster:
            errors.add("store.kind", "embedded: agents in a cluster cannot read it: use kubernetes")
        case KubernetesStoreSettings() if not in_cluster:
            errors.add(
                "store.kind",
                "kubernetes: needs source.kind kubernetes: virtual machines of pods without manifest would be deleted",
            )
