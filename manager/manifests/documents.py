"""Parser of manifest files: the YAML that kubectl accepts, or JSON, from an untrusted file.

PyYAML's C loader recurses for each level of nesting, so a file of brackets would crash the process with a stack
overflow; the depth is counted when the loader enters and leaves a value. Aliases are cheap to load but expensive to
walk, so their expansion is limited. Only the types of JSON are loaded: no dates, no base-60 numbers.
"""

from typing import Any, ClassVar

import yaml

from contrail_yaml.duplicate_keys import reject_duplicate_keys, unique_keys
from contrail_yaml.errors import DuplicateKeyError
from manager.manifests.errors import InvalidManifestError
from manager.parsing.errors import BadValueError
from manager.parsing.json_text import parse_json

MAX_DEPTH = 100
"""Limit for levels of nesting; Kubernetes objects have about 20."""

MAX_VALUES = 1_000_000
"""Limit for values in a file, and in a document with its aliases expanded; 10,000 pods have about 250,000."""

_JSON_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map", "merge")}


def parse_documents(content: bytes, *, is_json: bool) -> list[Any]:
    """Returns the documents of a file, None for empty ones. Raises InvalidManifestError, with a position if known."""
    try:
        # Accepts a byte order mark, which some editors on Windows write.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidManifestError(f"not UTF-8: invalid byte at offset {error.start}") from error
    return _parse_json(text) if is_json else _parse_yaml(text)


def _parse_json(text: str) -> list[Any]:
    try:
        return [parse_json(text, make_object=unique_keys)] if text.strip() else []
    except BadValueError as error:
        raise InvalidManifestError(str(error)) from error


def _parse_yaml(text: str) -> list[Any]:
    try:
        return list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        raise InvalidManifestError(_explain(error)) from error
    except DuplicateKeyError as error:
        raise InvalidManifestError(f"not valid YAML: {error}") from error
    except (yaml.YAMLError, ValueError, KeyError) as error:  # the latter two: an explicit tag does not fit the value
        raise InvalidManifestError(f"not valid YAML: {' '.join(str(error).split())}") from error


def _explain(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = "" if mark is None else f" line {mark.line + 1}, column {mark.column + 1}:"
    return f"not valid YAML:{where} {' '.join(filter(None, (error.context, error.problem)))}"


class _Loader(yaml.CSafeLoader):
    """Loads the types of JSON; rejects duplicate keys, depth above MAX_DEPTH and expansion above MAX_VALUES."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # PyYAML declares it as an instance variable
        first: [(tag, pattern) for tag, pattern in resolvers if tag in _JSON_TAGS]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors: ClassVar[dict[Any, Any]] = {
        tag: construct
        for tag, construct in yaml.CSafeLoader.yaml_constructors.items()
        if tag is None or tag in _JSON_TAGS
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._values = 0
        # The measurement is slow for large files, and only aliases need it.
        self._has_aliases = "*" in text

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:  # noqa: ARG002  # PyYAML's signature
        """Called by the C loader when it enters a value."""
        self._depth += 1
        self._values += 1
        _check_limits(values=self._values, levels=self._depth)

    def ascend_resolver(self) -> None:
        """Called by the C loader when it leaves a value."""
        self._depth -= 1

    def construct_document(self, node: yaml.Node) -> Any:
        """Checks and constructs a document."""
        if self._has_aliases:
            _measure(node, {})
        reject_duplicate_keys(node)
        return super().construct_document(node)


def _construct_number(loader: _Loader, node: yaml.ScalarNode) -> Any:
    """Keeps `12:30` as a string: YAML 1.1 reads it as a base-60 number, which no other reader of manifests does."""
    if ":" in node.value:
        return node.value
    return loader.construct_yaml_int(node) if node.tag.endswith("int") else loader.construct_yaml_float(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_number)


def _measure(node: yaml.Node, known: dict[int, tuple[int, int]], *, depth: int = 1) -> tuple[int, int]:
    """Returns number of values and depth of the expanded node. Raises InvalidManifestError above the limits."""
    _check_limits(values=0, levels=depth)  # also ends the recursion for an alias of a node in itself
    # Aliases share nodes, so each node is measured once.
    if id(node) not in known:
        parts = [_measure(child, known, depth=depth + 1) for child in _children(node)]
        known[id(node)] = 1 + sum(values for values, _ in parts), 1 + max((levels for _, levels in parts), default=0)
    values, levels = known[id(node)]
    _check_limits(values=values, levels=levels)
    return values, levels


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _check_limits(*, values: int, levels: int) -> None:
    if levels > MAX_DEPTH:
        raise InvalidManifestError(f"nested deeper than {MAX_DEPTH} levels")
    if values > MAX_VALUES:
        raise InvalidManifestError(f"more than {MAX_VALUES} values, counted with aliases expanded")
