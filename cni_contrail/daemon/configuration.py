"""Configuration of the daemon: a YAML file, validated as a whole at start.

Its keys are those of the plugin's settings, and apply to the whole node: a network configuration may override only
`mtu` and `nad`. The node-wide file (`cni_contrail.settings`) is read at each call as well, as in the entry point; the
daemon's own keys take precedence over it. Two keys are about the daemon itself.

| key | default | meaning |
|---|---|---|
| `socket` | `/run/contrail/cni.sock` | Unix socket that shims connect to |
| `metrics-listen` | | HOST:PORT of `/healthz`, `/readyz` and `/metrics`; not served if absent |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cni_contrail.daemon.errors import DaemonConfigurationError
from cni_contrail.errors import PluginError
from cni_contrail.quoting import quoted
from cni_contrail.settings import read_section
from contrail_service.errors import ConfigurationError
from contrail_service.listen import ListenAddress, parse_listen
from contrail_yaml.errors import YamlError
from contrail_yaml.file import read_yaml

DEFAULT_SOCKET = "/run/contrail/cni.sock"

_MAX_SOCKET_PATH = 107  # bytes: sun_path of a sockaddr_un, less the final zero


class DaemonConfiguration(NamedTuple):
    """`settings` by key, as returned by `cni_contrail.settings.read_section`; `metrics_listen` None: not served."""

    socket: str = DEFAULT_SOCKET
    metrics_listen: ListenAddress | None = None
    settings: Mapping[str, Any] = {}


def load_daemon_configuration(path: str) -> DaemonConfiguration:
    """Reads and validates the file; a key without a value has its default. Raises `DaemonConfigurationError`."""
    document = _read(path)
    given = {key: value for key, value in document.items() if value is not None}
    own = {key: given.pop(key) for key in ("socket", "metrics-listen") if key in given}
    try:
        return DaemonConfiguration(
            socket=_socket(own.get("socket", DEFAULT_SOCKET), path),
            metrics_listen=_listen(own["metrics-listen"], path) if "metrics-listen" in own else None,
            settings=read_section(given, path),
        )
    except PluginError as error:
        raise DaemonConfigurationError(error.message) from error


def _read(path: str) -> Mapping[str, Any]:
    try:
        document = read_yaml(path)
    except YamlError as error:
        raise DaemonConfigurationError(str(error)) from error
    if document is None:
        return {}
    if not isinstance(document, Mapping) or not all(isinstance(key, str) for key in document):
        raise DaemonConfigurationError(f"{path}: must be a mapping with string keys")
    return document


def _socket(value: object, path: str) -> str:
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise DaemonConfigurationError(f"{path}: socket must be an absolute path, not {quoted(value)}")
    if len(value.encode()) > _MAX_SOCKET_PATH:
        raise DaemonConfigurationError(
            f"{path}: socket must be at most {_MAX_SOCKET_PATH} bytes long, not {quoted(value)}"
        )
    return value


def _listen(value: object, path: str) -> ListenAddress:
    try:
        return parse_listen(value if isinstance(value, str) else quoted(value), key=f"{path}: metrics-listen")
    except ConfigurationError as error:
        raise DaemonConfigurationError(str(error)) from error
