"""Settings of the plugin: section `contrail` of the network configuration, over the node-wide file, over the defaults.

A NetworkAttachmentDefinition is written by a tenant and read by root. So a network configuration may repeat but not
change what the node-wide file (JSON, the same keys) sets, except for `mtu` and `nad`. Nor can it choose the file: the
environment variable CONTRAIL_CNI_CONFIG does, which the owner of the runtime sets.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from cni_contrail.errors import Code, PluginError
from cni_contrail.link.host_side import DIRECTORY
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.log import LEVELS, Log
from cni_contrail.node_file import read_node_file
from cni_contrail.protocol.environment import IDENTIFIER, NOT_UTF_8, link_name_problem
from cni_contrail.protocol.netconf import NetworkConfig, object_at
from cni_contrail.quoting import MAX_QUOTED, cut, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SECTION = "section contrail of the network configuration"
# kubelet never cancels a sandbox, so a waiting pod cannot be deleted. Without a meta plugin the wait may be short: the
# manager's patch of the pod wakes kubelet when the list exists. Multus' pods are retried only with kubelet's back-off.
_THICK_TIMEOUT = 8.0  # seconds
_DELEGATED_TIMEOUT = 60.0
_TENANT_MAY_CHANGE = ("mtu", "nad")


class Settings(NamedTuple):
    """All settings, one field per key (`agent-socket` is `agent_socket`).

    `mode` is `thick`, `delegated` or `auto`; `poll_timeout` is in seconds, and its product with `poll_retries` limits
    the whole wait for the agent; `mtu` is in bytes. An empty string, and 0 as `poll_retries`, mean not set.
    """

    mode: str = "auto"
    network_name: str = "contrail-k8s-cni"
    nad: str = ""
    cluster_name: str = "k8s"
    agent_socket: str = ""
    vrouter_ip: str = "127.0.0.1"
    vrouter_port: int = 9091
    poll_timeout: float = 3
    poll_retries: int = 0
    config_dir: str = "/var/lib/contrail/ports/vm"
    state_dir: str = "/run/contrail/cni"
    sysctl_dir: str = "/proc/sys"
    netns_dir: str = DIRECTORY
    vif_type: str = "veth"
    parent_interface: str = "eth0"
    mtu: int = 1500
    log_file: str = ""
    log_level: str = "info"
    meta_plugin: str = ""  # upstream's key; accepted and ignored: the name of a meta plugin says nothing reliable

    def agent_timeout(self, *, is_thick: bool) -> float:
        """Seconds to wait for the agent in total."""
        if self.poll_retries:
            return self.poll_timeout * self.poll_retries
        return _THICK_TIMEOUT if is_thick else _DELEGATED_TIMEOUT

    @property
    def nested_parent(self) -> str:
        """The parent interface in nested mode, where interfaces are macvlans over its VLANs; otherwise empty."""
        return self.parent_interface if self.vif_type == "macvlan" else ""

    def is_thick(self, network: str) -> bool:
        """Whether the network of that name attaches all interfaces of the pod at once."""
        return self.mode == "thick" or (self.mode == "auto" and network == self.network_name)


def load_settings(config: NetworkConfig, environment: Mapping[str, str], overrides: Mapping[str, Any]) -> Settings:
    """Reads and merges all settings; `overrides`, as `read_section` returned them, override the node-wide file.

    Raises `PluginError` with code 7, which names key and value.
    """
    node = {**read_node_file(environment, read_section), **overrides}
    own = read_section(object_at(config.document, "contrail"), _SECTION)
    if own.get("mode") == "auto":
        del own["mode"]  # leaves the choice to the node
    for key, value in own.items():
        if key in node and node[key] != value and key not in _TENANT_MAY_CHANGE:
            raise PluginError(
                Code.INVALID_CONFIG,
                f"{_SECTION}: {key} is set node-wide to {quoted(node[key])} and must not be changed to {quoted(value)}",
            )
    settings = settings_of({**node, **own})
    return _within_node_limits(settings, settings_of(node), is_thick=settings.is_thick(config.name))


def load_settings_for_removal(
    config: NetworkConfig, environment: Mapping[str, str], overrides: Mapping[str, Any], log: Log
) -> Settings:
    """As `load_settings`, but ignores a section that ADD rejects and uses only the node's settings.

    So DEL after a rejected ADD succeeds. Raises `PluginError` with code 7 for the node-wide file.
    """
    try:
        return load_settings(config, environment, overrides)
    except PluginError as error:
        settings = node_settings(environment, overrides)  # raises if the error is in the node-wide file
        log.warning(f"{error.message}; using the node's settings")
        return settings


def node_settings(environment: Mapping[str, str], overrides: Mapping[str, Any]) -> Settings:
    """Returns the settings of the node without any network configuration; raises `PluginError` with code 7."""
    return settings_of({**read_node_file(environment, read_section), **overrides})


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Returns the settings for values by key, as returned by `read_section`, over the defaults."""
    return Settings(**{key.replace("-", "_"): value for key, value in values.items()})


def _within_node_limits(settings: Settings, node: Settings, *, is_thick: bool) -> Settings:
    """Shortens the wait for the agent to that of the node, and lengthens the pauses to the node's.

    A tenant must not occupy the node's calls for longer, or send the agent more requests. Not an error, since
    upstream's configurations bring values of their own.
    """
    own = settings.agent_timeout(is_thick=is_thick)
    total = min(own, node.agent_timeout(is_thick=is_thick))
    pause = max(settings.poll_timeout, node.poll_timeout)
    if total == own and pause == settings.poll_timeout:
        return settings
    if not settings.poll_retries:
        return settings._replace(poll_timeout=pause)
    # Rounded down: fewer pauses, none of them shorter than `pause` unless the whole wait is.
    retries = max(1, math.floor(total / pause))
    return settings._replace(poll_timeout=total / retries, poll_retries=retries)


def read_section(section: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Validates and normalizes settings by key; `where` names their source in the `PluginError` with code 7."""
    values = {}
    for key, value in section.items():
        if key not in _READERS:
            raise PluginError(Code.INVALID_CONFIG, f"{where}: unknown key {cut(key)} with value {quoted(value)}")
        try:
            values[key] = _READERS[key](value)
        except ValueError as error:
            message = f"{where}: {key} must be {error}, not {quoted(value)}"
            raise PluginError(Code.INVALID_CONFIG, message) from error
    return values


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a string")  # noqa: TRY004 - `read_section` expects it from every reader
    # Later errors name paths and hosts, so no setting is longer than what an error quotes.
    if len(value) > MAX_QUOTED:
        raise ValueError(f"a string of at most {MAX_QUOTED} characters")
    # JSON can express half of a pair of surrogates, which is no character and has no form in a path.
    if NOT_UTF_8.search(value):
        raise ValueError("a string that is valid as UTF-8")
    return value


def _name(value: object) -> str:
    if not IDENTIFIER.fullmatch(_text(value)):
        raise ValueError("a name of letters, digits, '_', '.' and '-'")
    return _text(value)


def _link_name(value: object) -> str:
    if problem := link_name_problem(_text(value)):
        raise ValueError(f"the name of a link ({problem})")
    return _text(value)


def _host(value: object) -> str:
    if not re.fullmatch(r"[0-9A-Za-z.:_-]+", _text(value)):
        raise ValueError("an address or a host name")
    return _text(value)


def _path(value: object) -> str:
    if not _text(value).startswith("/") or "\0" in _text(value):
        raise ValueError("an absolute path")
    return _text(value).rstrip("/") or "/"


def _path_or_empty(value: object) -> str:
    return value if value == "" and isinstance(value, str) else _path(value)


def _nad(value: object) -> str:
    if not re.fullmatch(r"[a-z0-9.-]+/[a-z0-9.-]+", _text(value)):
        raise ValueError("namespace/name")
    return _text(value)


def _whole(lowest: int, highest: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        # `bool` is a subclass of `int`.
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise ValueError(f"a whole number from {lowest} to {highest}")
        return value

    return read


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 3600:
        raise ValueError("a number of seconds above 0 and at most 3600")
    return value


def _choice(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return str(value)

    return read


def _mode(value: object) -> str:
    mode = _choice("auto", "k8s", "thick", "delegated")(value)
    return "auto" if mode == "k8s" else mode  # upstream's name for it


def _log_level(value: object) -> str:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return "info" if int(value) == 0 else "debug"  # upstream's form: a verbosity
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
    "netns-dir": _path,
    "vif-type": _choice("veth", "macvlan"),
    "parent-interface": _link_name,
    "mtu": _whole(68, 65535),  # 68 is the minimum of IPv4
    "log-file": _path_or_empty,
    "log-level": _log_level,
    "meta-plugin": _text,
}
