"""A NAD's `spec.config`: a CNI network configuration, or a list of plugins (CNI specification 1.0.0, section 1)."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from manager.parsing.errors import BadValueError
from manager.parsing.json_text import json_list, json_object, parse_json
from manager.parsing.quoting import quoted

PLUGIN = "contrail-k8s-cni"

_LEAST_MTU = 68  # RFC 791
_LEAST_IPV6_MTU = 1280  # RFC 8200, section 5
_LARGEST_MTU = 65535
_LONGEST_NAME = 255  # runtimes name files by it
_NETWORK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class NetConf(NamedTuple):
    """What is asked of a configuration here.

    `name`: None if it has none. `own`: what it says to our plugin, without nulls; None if it is not for our plugin.
    """

    name: str | None
    first_plugin: str
    own: Mapping[str, Any] | None


def parse_netconf(text: str) -> NetConf:
    """Reads `spec.config`. Raises BadValueError for what is no configuration."""
    config = json_object(parse_json(text))
    listed = config.get("plugins")
    plugins = [config] if listed is None else [json_object(plugin) for plugin in json_list(listed)]
    types = [_plugin_type(plugin) for plugin in plugins]
    return NetConf(
        name=_name(config),
        first_plugin=next(iter(types), ""),
        own=_own(config, plugins[types.index(PLUGIN)]) if PLUGIN in types else None,
    )


def parse_mtu(value: Any) -> int:
    """An MTU in bytes. Raises BadValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not _LEAST_MTU <= value <= _LARGEST_MTU:
        raise BadValueError(f"{quoted(value)} is no MTU: a number from {_LEAST_MTU} to {_LARGEST_MTU}")
    return value


def check_ipv6_mtu(mtu: int) -> None:
    """Raises BadValueError if IPv6 cannot work with this MTU."""
    if mtu < _LEAST_IPV6_MTU:
        raise BadValueError(f"{mtu} is below {_LEAST_IPV6_MTU}, the least that IPv6 needs")


def _own(config: Mapping[str, Any], plugin: Mapping[str, Any]) -> Mapping[str, Any]:
    """The plugin's own object, and below it the keys of the list around it."""
    return {key: value for key, value in {**config, **plugin}.items() if value is not None}


def _plugin_type(plugin: Mapping[str, Any]) -> str:
    kind = plugin.get("type")
    if not isinstance(kind, str) or not kind:
        raise BadValueError(f"{quoted(plugin)} has no plugin's name as type, but {quoted(kind)}")
    return kind


def _name(config: Mapping[str, Any]) -> str | None:
    name = config.get("name")
    if name is not None and not isinstance(name, str):
        raise BadValueError(f"name {quoted(name)} is no text")
    if name and (len(name) > _LONGEST_NAME or not _NETWORK_NAME.fullmatch(name)):
        form = f"at most {_LONGEST_NAME} letters and digits, then '_', '.' and '-' too"
        raise BadValueError(f"name {quoted(name)} is no network name: {form}")
    return name or None
