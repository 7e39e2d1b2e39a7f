"""The agent's configuration file (YAML, every key but `store` optional), checked whole at start.

```yaml
node: worker-1                        # default: NODE_NAME of the environment, else the host's name
listen: 127.0.0.1:9091
socket: /run/contrail/agent.sock      # for our own plugin; always takes writes
tcp-writes: true                      # whether writes are taken at `listen` too, as upstream's clients need them
ports-dir: /var/lib/contrail/ports
store: {kind: kubernetes, kubeconfig: FILE}    # needed; kubeconfig: else KUBECONFIG, its cluster or ~/.kube/config
metrics-listen: null                  # /healthz, /readyz and /metrics alone, where a scraper reaches them
```
"""

import os
import re
import socket

import msgspec

from contrail_service.configuration import load_configuration
from contrail_service.errors import ConfigurationError
from contrail_service.listen import parse_listen

_NODE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?")
"""What the value of a label may be, but longer: the store cuts it."""


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What all sections have in common."""


class EmbeddedStoreSettings(_Section, frozen=True, tag_field="kind", tag="embedded"):
    """The SQLite file of a process on this machine."""

    path: str | None = None


class KubernetesStoreSettings(_Section, frozen=True, tag_field="kind", tag="kubernetes"):
    """Custom resources in a cluster."""

    kubeconfig: str | None = None


class VncStoreSettings(_Section, frozen=True, tag_field="kind", tag="vnc"):
    """A Contrail API server."""

    url: str | None = None


def _node_name() -> str:
    """What the node is called in its cluster: kubelet takes the host's name in lower case."""
    return os.environ.get("NODE_NAME") or socket.gethostname().lower()


class AgentConfiguration(_Section, frozen=True):
    """The whole file."""

    node: str = msgspec.field(default_factory=_node_name)
    listen: str = "127.0.0.1:9091"
    socket: str = "/run/contrail/agent.sock"
    tcp_writes: bool = True
    ports_dir: str = "/var/lib/contrail/ports"
    store: EmbeddedStoreSettings | KubernetesStoreSettings | VncStoreSettings | None = None
    metrics_listen: str | None = None


def load_agent_configuration(path: str) -> AgentConfiguration:
    """Returns the file's contents. Raises ConfigurationError with file, key and value."""
    configuration = load_configuration(path, AgentConfiguration)
    _check(configuration, origin=path)
    return configuration


def _check(configuration: AgentConfiguration, *, origin: str) -> None:
    listen = parse_listen(configuration.listen, key=f"{origin}: listen")
    if configuration.metrics_listen is not None:
        metrics = parse_listen(configuration.metrics_listen, key=f"{origin}: metrics-listen")
        if metrics == listen and listen.port:
            raise ConfigurationError(f"{origin}: metrics-listen: {metrics} is taken by listen")
    if not configuration.node.strip():
        raise ConfigurationError(f"{origin}: node: is empty")
    if isinstance(configuration.store, KubernetesStoreSettings) and not _NODE_NAME.fullmatch(configuration.node):
        rule = "at most 253 letters, digits, '-', '_' and '.', the first and the last a letter or a digit"
        raise ConfigurationError(f"{origin}: node: {configuration.node!r} is no name of a node: {rule}")
    for key, value in (("socket", configuration.socket), ("ports-dir", configuration.ports_dir)):
        if not os.path.isabs(value):
            raise ConfigurationError(f"{origin}: {key}: {value!r} is no absolute path")
