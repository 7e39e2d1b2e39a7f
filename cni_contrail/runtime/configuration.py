"""Network configurations: read, checked whole, and brought to one form.

Administrators write lists of plugins (`.conflist`, CNI specification 1.1.0, section 1) or single configurations
(`.conf`, `.json`, of versions before 1.0.0), which become lists of one plugin. Behind the plugins of a list come those
in the files `<network name>/*.conf` beside it, unless it says `loadOnlyInlinedPlugins`. Unknown keys belong to the
plugins and are kept.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cni_contrail.protocol.environment import IDENTIFIER
from cni_contrail.runtime import versions
from cni_contrail.runtime.document import Document
from cni_contrail.runtime.files import configuration_files, read_file

_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+", re.ASCII)


class PluginConfiguration(NamedTuple):
    """One plugin of a list: `document` as written, `capabilities` those that it declares with true."""

    type: str
    document: Mapping[str, Any]
    capabilities: frozenset[str]


class NetworkList(NamedTuple):
    """A network configuration list. `source` is its JSON text as read, which is cached with results.

    `version` is the highest that the list offers and this runtime speaks.
    """

    name: str
    version: str
    disable_check: bool
    disable_gc: bool
    plugins: tuple[PluginConfiguration, ...]
    source: bytes


def parse_list(source: bytes, *, origin: str) -> NetworkList:
    """Returns the list that a JSON text holds; `origin` names it in errors. Raises ConfigurationError."""
    document = Document.decode(source, origin=origin)
    return _network_list(document, source, inlined=_inlined(document), folder=None)


def parse_single(source: bytes, *, origin: str) -> NetworkList:
    """Returns a single configuration as a list of one plugin. Raises ConfigurationError."""
    document = Document.decode(source, origin=origin)
    if "plugins" in document.content:
        document.refuse("plugins", "a list of plugins belongs in a .conflist file")
    stated = {key: document.content[key] for key in ("name", "cniVersion") if key in document.content}
    listed = Document({**stated, "plugins": [document.content]}, origin=origin)
    return _network_list(listed, json.dumps(listed.content).encode(), inlined=[_plugin(document)], folder=None)


def load_file(path: str) -> NetworkList:
    """Returns the configuration of a file, a list if its name ends in `.conflist`. Raises ConfigurationError."""
    source = read_file(path)
    if not path.endswith(".conflist"):
        return parse_single(source, origin=path)
    document = Document.decode(source, origin=path)
    return _network_list(document, source, inlined=_inlined(document), folder=os.path.dirname(path))


def _network_list(
    document: Document, source: bytes, *, inlined: list[PluginConfiguration], folder: str | None
) -> NetworkList:
    """Puts the list together; `folder` is where the list stands, None if that is no file."""
    name = _name(document)
    only_inlined = document.flag("loadOnlyInlinedPlugins")
    beside = [] if only_inlined or folder is None else _beside(os.path.join(folder, name))
    if not inlined + beside:
        document.refuse("plugins", "is missing")
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
    paths = configuration_files(folder, (".conf",)) if os.path.isdir(folder) else []
    return [_plugin(Document.decode(read_file(path), origin=path)) for path in paths]


def _plugin(document: Document) -> PluginConfiguration:
    kind = document.string("type")
    if "/" in kind:
        document.refuse("type", f"{kind!r} must be the name of an executable, without a path")
    capabilities = document.flags("capabilities")
    declared = frozenset(capability for capability, declared in capabilities.items() if declared)
    return PluginConfiguration(kind, document.content, declared)


def _name(document: Document) -> str:
    name = document.string("name")
    if not IDENTIFIER.fullmatch(name):
        document.refuse("name", f"{name!r} must be letters, digits, '_', '.' and '-', the first a letter or a digit")
    return name


def _version(document: Document) -> str:
    stated = document.content.get("cniVersion", "")
    if not isinstance(stated, str):
        document.refuse("cniVersion", f"must be a string, not {stated!r}")
    if "cniVersions" in document.content:
        return _highest_known(document, {stated, *_offered_versions(document)})
    if stated and stated not in versions.SUPPORTED:
        document.refuse("cniVersion", f"{stated!r} is none of {', '.join(versions.SUPPORTED)}")
    return stated or versions.UNSTATED


def _highest_known(document: Document, offered: set[str]) -> str:
    """Passes over what a later specification brought: the list says itself that it can do without."""
    known = [version for version in versions.SUPPORTED if version in offered]
    if not known:
        document.refuse("cniVersions", f"has none of {', '.join(versions.SUPPORTED)}")
    return known[-1]


def _offered_versions(document: Document) -> list[str]:
    offered = document.content["cniVersions"]
    if not isinstance(offered, list):
        document.refuse("cniVersions", f"must be a list, not {offered!r}")
    for index, version in enumerate(offered):
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            document.refuse(f"cniVersions[{index}]", f"must be a version such as 1.0.0, not {version!r}")
    return offered
