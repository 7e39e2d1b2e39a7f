"""Network configurations: read, checked whole, and brought to one form.

Administrators write lists of plugins (`.conflist`, CNI specification 1.0.0, section 1) or single configurations
(`.conf`, `.json`, all versions before it), which become lists of one plugin. Unknown keys belong to the plugins and are
kept.

The reading is strict where libcni's is not: what a plugin would refuse at its first call is refused here, with file
and key.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from cni_contrail.protocol.environment import IDENTIFIER
from cni_contrail.protocol.versions import SUPPORTED
from cni_contrail.runtime import versions
from cni_contrail.runtime.errors import ConfigurationError

_NOT_YET = ("cniVersions", "loadOnlyInlinedPlugins")
"""Keys of CNI 1.1.0 that would change what is executed."""


class PluginConfiguration(NamedTuple):
    """One plugin of a list: `document` as written, `capabilities` those that it declares with true."""

    type: str
    document: Mapping[str, Any]
    capabilities: frozenset[str]


class NetworkList(NamedTuple):
    """A network configuration list. `source` is its JSON text as read, which is cached with results."""

    name: str
    version: str
    disable_check: bool
    plugins: tuple[PluginConfiguration, ...]
    source: bytes


def parse_list(source: bytes, *, origin: str) -> NetworkList:
    """Returns the list that a JSON text holds; `origin` names it in errors. Raises ConfigurationError."""
    return _Reader(origin).network_list(_decode(source, origin), source)


def parse_single(source: bytes, *, origin: str) -> NetworkList:
    """Returns a single configuration as a list of one plugin. Raises ConfigurationError."""
    document = _decode(source, origin)
    if "plugins" in document:
        raise ConfigurationError(f"{origin}: key 'plugins': a list of plugins belongs in a .conflist file")
    listed = {key: document[key] for key in ("name", "cniVersion") if key in document} | {"plugins": [document]}
    return _Reader(origin, single=True).network_list(listed, json.dumps(listed).encode())


def load_file(path: str) -> NetworkList:
    """Returns the configuration of a file, a list if its name ends in `.conflist`. Raises ConfigurationError."""
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    parse = parse_list if path.endswith(".conflist") else parse_single
    return parse(source, origin=path)


def _decode(source: bytes, origin: str) -> dict[str, Any]:
    try:
        document = json.loads(source)
    except ValueError as error:
        raise ConfigurationError(f"{origin}: is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ConfigurationError(f"{origin}: must hold a JSON object")
    return document


class _Reader:
    """Reads one document; knows what to call it in errors."""

    def __init__(self, origin: str, *, single: bool = False) -> None:
        self._origin = origin
        self._single = single

    def network_list(self, document: Mapping[str, Any], source: bytes) -> NetworkList:
        for key in _NOT_YET:
            if key in document:
                self._refuse(key, "is not supported yet")
        return NetworkList(
            name=self._name(document),
            version=self._version(document),
            disable_check=self._disable_check(document),
            plugins=self._plugins(document),
            source=source,
        )

    def _name(self, document: Mapping[str, Any]) -> str:
        name = self._string(document, "name")
        if not IDENTIFIER.fullmatch(name):
            self._refuse("name", f"{name!r} must be letters, digits, '_', '.' and '-', the first a letter or a digit")
        return name

    def _version(self, document: Mapping[str, Any]) -> str:
        version = document.get("cniVersion", "")
        if not isinstance(version, str):
            self._refuse("cniVersion", f"must be a string, not {version!r}")
        if version in versions.PLANNED:
            self._refuse("cniVersion", f"{version} is not supported yet")
        if version and version not in SUPPORTED:
            self._refuse("cniVersion", f"{version!r} is none of {', '.join(SUPPORTED)}")
        return version or versions.UNSTATED

    def _disable_check(self, document: Mapping[str, Any]) -> bool:
        value = document.get("disableCheck", False)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"  # as libcni reads it
        if not isinstance(value, bool):
            self._refuse("disableCheck", f"must be true or false, not {value!r}")
        return value

    def _plugins(self, document: Mapping[str, Any]) -> tuple[PluginConfiguration, ...]:
        plugins = document.get("plugins")
        if not isinstance(plugins, list) or not plugins:
            self._refuse("plugins", "must be a list of at least one plugin")
        return tuple(self._plugin(plugin, index) for index, plugin in enumerate(plugins))

    def _plugin(self, document: Any, index: int) -> PluginConfiguration:
        prefix = "" if self._single else f"plugins[{index}]."
        if not isinstance(document, dict):
            self._refuse(prefix.rstrip("."), "must be an object")
        kind = self._string(document, "type", prefix=prefix)
        if "/" in kind:
            self._refuse(f"{prefix}type", f"{kind!r} must be the name of an executable, without a path")
        return PluginConfiguration(kind, document, self._capabilities(document, prefix))

    def _capabilities(self, document: Mapping[str, Any], prefix: str) -> frozenset[str]:
        capabilities = document.get("capabilities", {})
        key = f"{prefix}capabilities"
        if not isinstance(capabilities, dict):
            self._refuse(key, "must be an object")
        for capability, declared in capabilities.items():
            if not isinstance(declared, bool):
                self._refuse(f"{key}.{capability}", f"must be true or false, not {declared!r}")
        return frozenset(capability for capability, declared in capabilities.items() if declared)

    def _string(self, document: Mapping[str, Any], key: str, *, prefix: str = "") -> str:
        value = document.get(key)
        if not isinstance(value, str) or not value:
            self._refuse(f"{prefix}{key}", "must be a string that is not empty" if key in document else "is missing")
        return value

    def _refuse(self, key: str, problem: str) -> NoReturn:
        raise ConfigurationError(f"{self._origin}: key '{key}': {problem}")
