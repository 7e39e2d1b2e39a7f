"""Duplicate keys in YAML and JSON: rejected here for all programs but the plugin.

YAML 1.2 forbids them (section 3.2.1.1) and JSON leaves them open (RFC 8259, section 4); PyYAML and `json` let the last
one win silently. YAML keys are compared as written, so `1` and `0x1` are two keys. A merge key (`<<`) may occur several
times, and the keys that it merges in do not count as the mapping's own.

The plugin's node-wide file (`cni_contrail.node_file`) has a JSON hook of its own: a module on the path of ADD imports
the standard library only.
"""

import json
import re
from typing import Any

import yaml

from contrail_yaml.errors import DuplicateKeyError

_MERGE = "tag:yaml.org,2002:merge"
_PLAIN = re.compile(r"[\w/-]{1,80}")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a JSON object, as the `object_pairs_hook` of a decoder. Raises DuplicateKeyError."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise DuplicateKeyError(f"{_shown(next(key for key in keys if keys.count(key) > 1))}: duplicate key")
    return found


def reject_duplicate_keys(document: yaml.Node) -> None:
    """Raises DuplicateKeyError if a mapping in a composed document has a key twice."""
    _check_node(document, "", set())


def _check_node(node: yaml.Node, path: str, seen: set[int]) -> None:
    if id(node) in seen:  # aliases make a graph of the document: each node is checked once
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        _compare_keys(node, path)
        for key, value in node.value:
            if isinstance(value, yaml.CollectionNode):
                _check_node(value, _below(path, key), seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _check_node(value, f"{path}[{index}]", seen)


def _compare_keys(node: yaml.MappingNode, path: str) -> None:
    found: dict[tuple[str, str], yaml.Node] = {}
    for key, _ in node.value:
        # with the tag: `1` and `"1"` are different keys
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
            first = found.setdefault((key.tag, key.value), key)
            if first is not key:
                raise DuplicateKeyError(f"{_below(path, key)}: duplicate key, in {_line(first)} and in {_line(key)}")


def _below(path: str, key: yaml.Node) -> str:
    name = _shown(key.value) if isinstance(key, yaml.ScalarNode) else "?"
    return f"{path}.{name}" if path else name


def _shown(key: str) -> str:
    return key if _PLAIN.fullmatch(key) else json.dumps(key[:80])


def _line(key: yaml.Node) -> str:
    return f"line {key.start_mark.line + 1}"
