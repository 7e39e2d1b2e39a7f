"""Parser of a NAD's `spec.config`: a CNI network configuration or configuration list (CNI 1.0.0, section 1)."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from manager.parsing.errors import BadValueError
from manager.parsing.json_text import json_list, json_object, parse_json
from manager.parsing.quoting import quoted

PLUGIN = "contrail-k8s-cni"

_MIN_MTU = 68  # RFC 791
MIN_IPV6_MTU = 1280  # RFC 8200, section 5
_MAX_MTU = 65535
_MAX_NAME = 255  # runtimes use it as a file name
_NETWORK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class NetConf(NamedTuple):
    """The parts of a network configuration that the manager uses.

    `own` is the Contrail plugin's part, without nulls; None if the configuration does not name that plugin.
    """

    name: str | None
    first_plugin: str
    own: Mapping[str, Any] | None


def parse_netconf(text: str) -> NetConf:
    """Parses `spec.config`. Raises BadValueError if it is not a network configuration."""
    config = json_object(parse_json(text))
    # `plugins: null` counts as absent, as for Go decoders.
    listed = config.get("plugins")
    plugins = [config] if listed is None else [json_object(plugin) for plugin in json_list(listed)]
    types = [_plugin_type(plugin) for plugin in plugins]
    return NetConf(
        name=_name(config),
        first_plugin=next(iter(types), ""),
        own=_own(config, plugins[types.index(PLUGIN)]) if PLUGIN in types else None,
    )


def parse_mtu(value: Any) -> int:
    """Returns an MTU in bytes. Raises BadValueError."""
    # bool is a subclass of int.
    if not isinstance(value, int) or isinstance(value, bool) or not _MIN_MTU <= value <= _MAX_MTU:
        raise BadValueError(f"{quoted(value)} is not a valid MTU: use a number from {_MIN_MTU} to {_MAX_MTU}")
    return value


def check_ipv6_mtu(mtu: int) -> None:
    """Raises BadValueError if the MTU is too small for IPv6."""
    if mtu < MIN_IPV6_MTU:
        raise BadValueError(f"{mtu} is below {MIN_IPV6_MTU}, the minimum MTU of IPv6")


def _own(config: Mapping[str, Any], plugin: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the plugin's object, completed with the keys of the list around it."""
    return {key: value for key, value in {**config, **plugin}.items() if value is not None}


def _plugin_type(plugin: Mapping[str, Any]) -> str:
    kind = plugin.get("type")
    if not isinstance(kind, str) or not kind:
        raise BadValueError(f"{quoted(plugin)}: type {quoted(kind)} is not a plugin name")
    return kind


def _name(config: Mapping[str, Any]) -> str | None:
    name = config.get("name")
    if name is not None and not isinstance(name, str):
        raise BadValueError(f"name {quoted(name)} is not a string")
    if name and (len(name) > _MAX_NAME or not _NETWORK_NAME.fullmatch(name)):
        form = f"use at most {_MAX_NAME} letters, digits, '_', '.' and '-', beginning with a letter or digit"
        raise BadValueError(f"name {quoted(name)} is not a valid network name: {form}")
    return name or None
