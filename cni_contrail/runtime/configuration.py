"""Network configurations: found by name, validated as a whole, and normalized to lists of plugins.

Administrators write lists of plugins (`.conflist`, CNI specification 1.1.0, section 1) or single configurations
(`.conf`, `.json`, of versions before 1.0.0), which become lists of one plugin. The plugins of a list are followed by
those in the files `<network name>/*.conf` beside it, unless it sets `loadOnlyInlinedPlugins`. Unknown keys belong to
the plugins and are kept.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cni_contrail.protocol.environment import IDENTIFIER
from cni_contrail.runtime import versions
from cni_contrail.runtime.document import Document
from cni_contrail.runtime.errors import NetworkConfigurationError

_LISTS = (".conflist",)
_SINGLES = (".conf", ".json")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+", re.ASCII)


class PluginConfiguration(NamedTuple):
    """One plugin of a list: `document` as written, `capabilities` those declared with true."""

    type: str
    document: Mapping[str, Any]
    capabilities: frozenset[str]


class NetworkList(NamedTuple):
    """A network configuration list. `source` is its JSON text as read, which is cached with results.

    `version` is the highest one that the list offers and this runtime supports.
    """

    name: str
    version: str
    disable_check: bool
    disable_gc: bool
    plugins: tuple[PluginConfiguration, ...]
    source: bytes


def find_network(directory: str, name: str) -> NetworkList:
    """Returns the configuration of this name: the first list by file name, else the first single one, as in libcni.

    Raises NetworkConfigurationError if there is none, or if a file before it is invalid (as libcni): a broken file must
    not change which network a name refers to.
    """
    for endings in (_LISTS, _SINGLES):
        for path in _configuration_files(directory, endings):
            network = load_file(path)
            if network.name == name:
                return network
    raise NetworkConfigurationError(f"network {name!r}: not found in {directory}")


def parse_list(source: bytes, *, origin: str) -> NetworkList:
    """Parses a list from JSON; `origin` names it in errors. Raises NetworkConfigurationError."""
    document = Document.decode(source, origin=origin)
    return _network_list(document, source, inlined=_inlined(document), folder=None)


def parse_single(source: bytes, *, origin: str) -> NetworkList:
    """Parses a single configuration into a list of one plugin. Raises NetworkConfigurationError."""
    document = Document.decode(source, origin=origin)
    if "plugins" in document.content:
        document.reject("plugins", "a list of plugins belongs in a .conflist file")
    stated = {key: document.content[key] for key in ("name", "cniVersion") if key in document.content}
    # Cached and parsed again for CHECK and DEL, so the source must be a list.
    listed = Document({**stated, "plugins": [document.content]}, origin=origin)
    return _network_list(listed, json.dumps(listed.content).encode(), inlined=[_plugin(document)], folder=None)


def load_file(path: str) -> NetworkList:
    """Loads a file, a list if its name ends in `.conflist`. Raises NetworkConfigurationError."""
    source = _read_file(path)
    if not path.endswith(".conflist"):
        return parse_single(source, origin=path)
    document = Document.decode(source, origin=path)
    return _network_list(document, source, inlined=_inlined(document), folder=os.path.dirname(path))


def _network_list(
    document: Document, source: bytes, *, inlined: list[PluginConfiguration], folder: str | None
) -> NetworkList:
    """Assembles the list; `folder` is the directory of its file, None if it is from no file."""
    name = _name(document)
    only_inlined = document.flag("loadOnlyInlinedPlugins")
    beside = [] if only_inlined or folder is None else _beside(os.path.join(folder, name))
    if not inlined + beside:
        document.reject("plugins", "is missing")
    return NetworkList(
        name=name,
        version=_version(document),
        disable_check=document.flag("disableCheck"),
        disable_gc=document.flag("disableGC"),
        plugins=(*inlined, *beside),
        source=source,
    )


def _inlined(document: Document) -> list[PluginConfiguration]:
    return [_plugin(inner) for inner in document.objects("plugins")]


def _beside(folder: str) -> list[PluginConfiguration]:
    paths = _configuration_files(folder, (".conf",)) if os.path.isdir(folder) else []
    return [_plugin(Document.decode(_read_file(path), origin=path)) for path in paths]


def _plugin(document: Document) -> PluginConfiguration:
    kind = document.string("type")
    # A path would execute a file outside the plugin directories.
    if "/" in kind:
        document.reject("type", f"must be the name of an executable without a path, not {kind!r}")
    capabilities = document.flags("capabilities")
    declared = frozenset(capability for capability, declared in capabilities.items() if declared)
    return PluginConfiguration(kind, document.content, declared)


def _name(document: Document) -> str:
    name = document.string("name")
    # The name becomes part of paths: of cache entries, and of the directory beside the list.
    if not IDENTIFIER.fullmatch(name):
        rule = "must be letters, digits, '_', '.' and '-', the first a letter or a digit"
        document.reject("name", f"{rule}, not {name!r}")
    return name


def _version(document: Document) -> str:
    stated = document.content.get("cniVersion", "")
    if not isinstance(stated, str):
        document.reject("cniVersion", f"must be a string, not {stated!r}")
    if "cniVersions" in document.content:
        return _highest_supported(document, {stated, *_offered_versions(document)})
    if stated and stated not in versions.SUPPORTED:
        document.reject("cniVersion", f"must be one of {', '.join(versions.SUPPORTED)}, not {stated!r}")
    return stated or versions.UNSTATED


def _highest_supported(document: Document, offered: set[str]) -> str:
    """Returns the highest supported one; later ones are skipped, since the list offers them as alternatives."""
    supported = [version for version in versions.SUPPORTED if version in offered]
    if not supported:
        document.reject("cniVersions", f"must contain one of {', '.join(versions.SUPPORTED)}")
    return supported[-1]


def _offered_versions(document: Document) -> list[str]:
    offered = document.content["cniVersions"]
    if not isinstance(offered, list):
        document.reject("cniVersions", f"must be a list, not {offered!r}")
    for index, version in enumerate(offered):
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            document.reject(f"cniVersions[{index}]", f"must be a version such as 1.0.0, not {version!r}")
    return offered


def _configuration_files(directory: str, endings: Sequence[str]) -> list[str]:
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        raise NetworkConfigurationError(f"{directory}: cannot be read: {error.strerror}") from error
    paths = (os.path.join(directory, name) for name in names if os.path.splitext(name)[1] in endings)
    return [path for path in paths if not os.path.isdir(path)]


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise NetworkConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
