"""The agent's configuration file (YAML), validated completely at start. Every key but `store` is optional.

```yaml
node: worker-1                        # default: NODE_NAME of the environment, else the hostname
listen: 127.0.0.1:9091
socket: /run/contrail/agent.sock      # for our own plugin; always accepts writes
datapath: none                        # linux: this node's kernel connects the interfaces; none: something else does
masquerade: true                      # datapath linux: packets of index 0 to the outside get the node's address
masquerade-excluded: []               # CIDRs beside the pods' own subnets that are not outside
cluster-name: k8s                     # that of the manager: datapath linux and store vnc need it
vxlan-port: 4789                      # datapath linux: UDP port of networks across nodes, the same on all of them
fabric-subnets: [10.64.0.0/12]        # datapath linux: CIDRs in which networks of tenants may get routes on the node
tcp-writes: false                     # whether `listen` accepts writes of root too; Contrail's clients need it
ports-dir: /var/lib/contrail/ports
installer-report: /run/contrail/installer.json  # of the node installer, for the node's report
store: {kind: kubernetes, kubeconfig: FILE}    # default: KUBECONFIG, in-cluster or ~/.kube/config; or kind: vnc
metrics-listen: null                  # only /healthz, /readyz and /metrics, for scrapers
```
"""

import os
import re
import socket
from ipaddress import ip_network
from typing import Annotated

import msgspec

from agent_api.datapath.fabric import DEFAULT_PORT
from agent_api.datapath.kind import DEFAULT_DATAPATH, Datapath
from agent_api.datapath.refusals import FABRIC_SUBNETS
from contrail_config.vnc.settings import VncSettings, setting_problems
from contrail_service.configuration import load_configuration
from contrail_service.errors import ConfigurationError
from contrail_service.listen import parse_listen

_NODE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?")
"""The syntax of a label value, but up to 253 characters: the store truncates it for its node label."""


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Common options of all sections."""


class EmbeddedStoreSettings(_Section, frozen=True, tag_field="kind", tag="embedded"):
    """SQLite file of a process on this machine."""

    path: str | None = None


class KubernetesStoreSettings(_Section, frozen=True, tag_field="kind", tag="kubernetes"):
    """Custom resources of a Kubernetes cluster."""

    kubeconfig: str | None = None


def _node_name() -> str:
    """Returns the default node name; kubelet registers the hostname in lower case."""
    return os.environ.get("NODE_NAME") or socket.gethostname().lower()


class AgentConfiguration(_Section, frozen=True):
    """The configuration file."""

    node: str = msgspec.field(default_factory=_node_name)
    listen: str = "127.0.0.1:9091"
    socket: str = "/run/contrail/agent.sock"
    tcp_writes: bool = False
    ports_dir: str = "/var/lib/contrail/ports"
    store: EmbeddedStoreSettings | KubernetesStoreSettings | VncSettings | None = None
    metrics_listen: str | None = None
    datapath: Datapath = DEFAULT_DATAPATH
    masquerade: bool = True
    masquerade_excluded: tuple[str, ...] = ()
    cluster_name: str = "k8s"
    vxlan_port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = DEFAULT_PORT
    fabric_subnets: tuple[str, ...] = FABRIC_SUBNETS
    installer_report: str = "/run/contrail/installer.json"


def load_agent_configuration(path: str) -> AgentConfiguration:
    """Returns the validated configuration. Raises ConfigurationError that names file, key and value."""
    configuration = load_configuration(path, AgentConfiguration)
    _check(configuration, origin=path)
    return configuration


def _check(configuration: AgentConfiguration, *, origin: str) -> None:
    listen = parse_listen(configuration.listen, key=f"{origin}: listen")
    if configuration.metrics_listen is not None:
        metrics = parse_listen(configuration.metrics_listen, key=f"{origin}: metrics-listen")
        if metrics == listen and listen.port:  # port 0 yields two different ports
            raise ConfigurationError(f"{origin}: metrics-listen: {metrics} is already used by listen")
    if not configuration.node.strip():
        raise ConfigurationError(f"{origin}: node: must not be empty")
    # Other stores keep the node name as it is; only in a cluster it becomes a label.
    if isinstance(configuration.store, KubernetesStoreSettings) and not _NODE_NAME.fullmatch(configuration.node):
        rule = "use at most 253 letters, digits, '-', '_' and '.', starting and ending with a letter or digit"
        raise ConfigurationError(f"{origin}: node: {configuration.node!r} is not a valid node name; {rule}")
    if isinstance(configuration.store, VncSettings):
        _check_contrail(configuration.store, origin=origin)
    for cidr in configuration.masquerade_excluded:
        check_cidr(cidr, key=f"{origin}: masquerade-excluded")
    for cidr in configuration.fabric_subnets:
        check_cidr(cidr, key=f"{origin}: fabric-subnets")
    paths = {
        "socket": configuration.socket,
        "ports-dir": configuration.ports_dir,
        "installer-report": configuration.installer_report,
    }
    for key, value in paths.items():
        if not os.path.isabs(value):
            raise ConfigurationError(f"{origin}: {key}: {value!r} is not an absolute path")


def _check_contrail(store: VncSettings, *, origin: str) -> None:
    if problems := [f"store.{key}: {problem}" for key, problem in setting_problems(store)]:
        raise ConfigurationError(f"{origin}: {'; '.join(problems)}")


def check_cidr(text: str, *, key: str) -> None:
    """Raises ConfigurationError, which begins with the key, if the text is no CIDR."""
    try:
        ip_network(text)
    except ValueError as error:
        raise ConfigurationError(f"{key}: {error}") from error
