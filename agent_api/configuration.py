"""The agent's configuration file (YAML, every key optional), checked whole at start.

```yaml
node: worker-1                        # default: the host's name
listen: 127.0.0.1:9091
socket: /run/contrail/agent.sock      # for our own plugin; always takes writes
tcp-writes: true                      # whether POST and DELETE are taken at `listen` too, as upstream's clients need
ports-dir: /var/lib/contrail/ports
store: {kind: embedded}
metrics-listen: null                  # /healthz, /readyz and /metrics alone, where a scraper reaches them
```
"""

import os
import socket
from typing import Literal

import msgspec

from contrail_service.configuration import load_configuration
from contrail_service.errors import ConfigurationError
from contrail_service.listen import ListenAddress, parse_listen


class StoreChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Which store to follow; `path` is the embedded one's file, `kubeconfig` and `url` those of the others."""

    kind: Literal["embedded", "kubernetes", "vnc"] = "embedded"
    path: str | None = None
    kubeconfig: str | None = None
    url: str | None = None


class AgentConfiguration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The file's keys. `load_agent_configuration` has checked what the types do not tell."""

    node: str = msgspec.field(default_factory=socket.gethostname)
    listen: str = "127.0.0.1:9091"
    socket: str = "/run/contrail/agent.sock"
    tcp_writes: bool = True
    ports_dir: str = "/var/lib/contrail/ports"
    store: StoreChoice = StoreChoice()
    metrics_listen: str | None = None

    @property
    def listen_address(self) -> ListenAddress:
        """Where the API is served over TCP. Raises ConfigurationError."""
        return parse_listen(self.listen, key="listen")

    @property
    def metrics_address(self) -> ListenAddress | None:
        """Where the status pages are served alone, None if nowhere. Raises ConfigurationError."""
        return None if self.metrics_listen is None else parse_listen(self.metrics_listen, key="metrics-listen")


def load_agent_configuration(path: str) -> AgentConfiguration:
    """Returns the file's contents. Raises ConfigurationError with file, key and value."""
    configuration = load_configuration(path, AgentConfiguration)
    try:
        _check(configuration)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return configuration


def _check(configuration: AgentConfiguration) -> None:
    addresses = (configuration.listen_address, configuration.metrics_address)
    if addresses[0] == addresses[1] and addresses[0].port:
        raise ConfigurationError(f"metrics-listen: {configuration.metrics_listen} is taken by listen")
    if not configuration.node.strip():
        raise ConfigurationError("node: is empty")
    for key, value in (("socket", configuration.socket), ("ports-dir", configuration.ports_dir)):
        if not os.path.isabs(value):
            raise ConfigurationError(f"{key}: {value!r} is no absolute path")
