"""Finds a key that a mapping has twice. YAML 1.2 forbids it (section 3.2.1.1); in PyYAML the last one wins in silence.

Keys are compared as they are written, so `1` and `0x1` are two. Merge keys (`<<`) may stand several times, and what
they bring in is not the mapping's own.
"""

import json
import re

import yaml

from contrail_yaml.errors import EqualKeysError

_MERGE = "tag:yaml.org,2002:merge"
_PLAIN = re.compile(r"[\w/-]{1,80}")


def refuse_equal_keys(document: yaml.Node) -> None:
    """Raises EqualKeysError if a mapping in a document, as it was composed, has a key twice."""
    _look_into(document, "", set())


def _look_into(node: yaml.Node, path: str, seen: set[int]) -> None:
    """Looks once at what aliases name often."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        _compare_keys(node, path)
        for key, value in node.value:
            if isinstance(value, yaml.CollectionNode):
                _look_into(value, _below(path, key), seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _look_into(value, f"{path}[{index}]", seen)


def _compare_keys(node: yaml.MappingNode, path: str) -> None:
    found: dict[tuple[str, str], yaml.Node] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
            first = found.setdefault((key.tag, key.value), key)
            if first is not key:
                raise EqualKeysError(f"{_below(path, key)} is given twice, in {_line(first)} and in {_line(key)}")


def _below(path: str, key: yaml.Node) -> str:
    return f"{path}.{_shown(key)}" if path else _shown(key)


def _shown(key: yaml.Node) -> str:
    if not isinstance(key, yaml.ScalarNode):
        return "?"
    return key.value if _PLAIN.fullmatch(key.value) else json.dumps(key.value[:80])


def _line(key: yaml.Node) -> str:
    return f"line {key.start_mark.line + 1}"
