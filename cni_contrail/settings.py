"""Settings of the plugin: section `contrail` of the network configuration, over the node-wide file, over the defaults.

A NetworkAttachmentDefinition is written by a tenant and read by root. So what the node-wide file (JSON, the same keys)
sets, a network configuration may repeat but not change, but for `mtu` and `nad`; and where the file lies, no network
configuration can say: the environment variable CONTRAIL_CNI_CONFIG does, which the runtime's owner sets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from cni_contrail.errors import Code, PluginError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.log import LEVELS, Log
from cni_contrail.node_file import read_node_file
from cni_contrail.protocol.environment import IDENTIFIER
from cni_contrail.protocol.netconf import NetworkConfig, object_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SECTION = "section contrail of the network configuration"
_TENANT_MAY_CHANGE = ("mtu", "nad")


class Settings(NamedTuple):
    """All settings, one field per key (`agent-socket` is `agent_socket`).

    `mode` is `thick`, `delegated` or `auto`; `poll_timeout` is in seconds, and its product with `poll_retries` bounds
    the whole wait for the agent; `mtu` is in bytes. Empty text: not set.
    """

    mode: str = "auto"
    network_name: str = "contrail-k8s-cni"
    nad: str = ""
    cluster_name: str = "k8s"
    agent_socket: str = ""
    vrouter_ip: str = "127.0.0.1"
    vrouter_port: int = 9091
    poll_timeout: float = 3
    poll_retries: int = 20
    config_dir: str = "/var/lib/contrail/ports/vm"
    state_dir: str = "/run/contrail/cni"
    sysctl_dir: str = "/proc/sys"
    vif_type: str = "veth"
    parent_interface: str = "eth0"
    mtu: int = 1500
    log_file: str = ""
    log_level: str = "info"
    meta_plugin: str = ""  # upstream's; accepted, never used: who started the plugin tells nothing reliable

    @property
    def agent_timeout(self) -> float:
        """How long to wait for the agent in all, in seconds."""
        return self.poll_timeout * self.poll_retries

    def is_thick(self, network: str) -> bool:
        """Whether the network configuration of that name is for all interfaces of the pod at once."""
        return self.mode == "thick" or (self.mode == "auto" and network == self.network_name)


def load_settings(config: NetworkConfig, environment: Mapping[str, str], over: Mapping[str, Any]) -> Settings:
    """Reads and merges all; `over` is set for the whole node too, over the file, as `read_section` returned it.

    Raises `PluginError` with code 7 that names key and value.
    """
    node = {**read_node_file(environment, read_section), **over}
    own = read_section(object_at(config.document, "contrail"), _SECTION)
    if own.get("mode") == "auto":
        del own["mode"]  # it leaves the choice to the node
    for key, value in own.items():
        if key in node and node[key] != value and key not in _TENANT_MAY_CHANGE:
            raise PluginError(
                Code.INVALID_CONFIG,
                f"{_SECTION}: {key} is set for the whole node to {json.dumps(node[key])}, "
                f"and may not be {json.dumps(value)}",
            )
    return settings_of({**node, **own})


def load_settings_for_removal(
    config: NetworkConfig, environment: Mapping[str, str], over: Mapping[str, Any], log: Log
) -> Settings:
    """As `load_settings`, but for a section that no ADD can have accepted: then what the node says alone holds.

    So a refused ADD can be followed by a DEL that succeeds. Raises `PluginError` with code 7 for the node-wide file.
    """
    try:
        return load_settings(config, environment, over)
    except PluginError as error:
        settings = node_settings(environment, over)  # if it raises, it was no error of the section
        log.warning(f"{error.message}: going on with the node's settings")
        return settings


def node_settings(environment: Mapping[str, str], over: Mapping[str, Any]) -> Settings:
    """What holds for the whole node where no network configuration says more; raises `PluginError` with code 7."""
    return settings_of({**read_node_file(environment, read_section), **over})


def reject_unsupported_settings(settings: Settings) -> None:
    """Raises `PluginError` with code 2 for what may be set, but cannot be served yet."""
    if settings.vif_type != "veth":
        raise PluginError(Code.UNSUPPORTED_FIELD, f'vif-type "{settings.vif_type}" is not supported yet')


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Settings by key, as `read_section` returned them, over the defaults."""
    return Settings(**{key.replace("-", "_"): value for key, value in values.items()})


def read_section(section: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Checks settings by key; `where` they are goes into the `PluginError` with code 7."""
    values = {}
    for key, value in section.items():
        if key not in _READERS:
            raise PluginError(Code.INVALID_CONFIG, f"{where}: unknown key {key} (its value is {_shown(value)})")
        try:
            values[key] = _READERS[key](value)
        except ValueError as error:
            message = f"{where}: {key} must be {error}, not {_shown(value)}"
            raise PluginError(Code.INVALID_CONFIG, message) from error
    return values


def _shown(value: object) -> str:
    return json.dumps(value, default=str)  # a YAML file may hold dates


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a string")  # noqa: TRY004 - a reader's one way to say what the value must be
    return value


def _name(value: object) -> str:
    if not IDENTIFIER.fullmatch(_text(value)):
        raise ValueError("a name of letters, digits, '_', '.' and '-'")
    return _text(value)


def _host(value: object) -> str:
    if not re.fullmatch(r"[0-9A-Za-z.:_-]+", _text(value)):
        raise ValueError("an address or a host name")
    return _text(value)


def _path(value: object) -> str:
    if not _text(value).startswith("/") or "\0" in _text(value):
        raise ValueError("an absolute path")
    return _text(value)


def _path_or_empty(value: object) -> str:
    return value if value == "" and isinstance(value, str) else _path(value)


def _nad(value: object) -> str:
    if not re.fullmatch(r"[a-z0-9.-]+/[a-z0-9.-]+", _text(value)):
        raise ValueError("namespace/name")
    return _text(value)


def _whole(lowest: int, highest: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise ValueError(f"a whole number from {lowest} to {highest}")
        return value

    return read


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 3600:
        raise ValueError("a number of seconds, above 0 and at most 3600")
    return value


def _choice(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return str(value)

    return read


def _mode(value: object) -> str:
    mode = _choice("auto", "k8s", "thick", "delegated")(value)
    return "auto" if mode == "k8s" else mode  # upstream's word


def _log_level(value: object) -> str:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return "info" if int(value) == 0 else "debug"  # upstream's: a verbosity
    return _choice(*LEVELS)(value)


_READERS: Mapping[str, Callable[[object], Any]] = {
    "mode": _mode,
    "network-name": _name,
    "nad": _nad,
    "cluster-name": _name,
    "agent-socket": _path_or_empty,
    "vrouter-ip": _host,
    "vrouter-port": _whole(1, 65535),
    "poll-timeout": _seconds,
    "poll-retries": _whole(1, 10000),
    "config-dir": _path,
    "state-dir": _path,
    "sysctl-dir": _path,
    "vif-type": _choice("veth", "macvlan"),
    "parent-interface": _text,
    "mtu": _whole(68, 65535),
    "log-file": _path_or_empty,
    "log-level": _log_level,
    "meta-plugin": _text,
}
