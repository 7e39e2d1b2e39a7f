"""The documents of a manifest: YAML as kubectl takes it, or JSON, from a file that anyone may have written.

PyYAML's fast loader is C that calls itself for each level of nesting, so a file of brackets would take the whole
process down; depth is counted where the loader enters and leaves a value. Aliases cost nothing as such, but walking
over them does, so what they expand to is bounded. Only what JSON has is loaded: no dates, no numbers to the base of 60.
"""

from typing import Any, ClassVar

import yaml

from contrail_yaml.duplicate_keys import reject_duplicate_keys, unique_keys
from contrail_yaml.errors import DuplicateKeyError
from manager.manifests.errors import InvalidManifestError
from manager.parsing.errors import BadValueError
from manager.parsing.json_text import parse_json

MAX_DEPTH = 100
"""Levels of nesting; Kubernetes' own objects have about 20."""

MAX_VALUES = 1_000_000
"""Values in a file, and in a document once its aliases are expanded; 10,000 pods have about 250,000."""

_JSON_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map", "merge")}


def read_documents(content: bytes, *, is_json: bool) -> list[Any]:
    """The documents of a file, None for empty ones. Raises UnusableError, with line and column where there are any."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidManifestError(f"is no UTF-8 text: byte {error.start} is wrong") from error
    return _read_json(text) if is_json else _read_yaml(text)


def _read_json(text: str) -> list[Any]:
    try:
        return [parse_json(text, make_object=unique_keys)] if text.strip() else []
    except BadValueError as error:
        raise InvalidManifestError(str(error)) from error


def _read_yaml(text: str) -> list[Any]:
    try:
        return list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        raise InvalidManifestError(_explain(error)) from error
    except DuplicateKeyError as error:
        raise InvalidManifestError(f"is no valid YAML: {error}") from error
    except (yaml.YAMLError, ValueError, KeyError) as error:  # the latter two where an explicit tag does not fit
        raise InvalidManifestError(f"is no valid YAML: {' '.join(str(error).split())}") from error


def _explain(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = "" if mark is None else f" line {mark.line + 1}, column {mark.column + 1}:"
    return f"is no valid YAML:{where} {' '.join(filter(None, (error.context, error.problem)))}"


class _Loader(yaml.CSafeLoader):
    """Loads JSON's types, no key twice, nothing deeper than DEEPEST and nothing that expands beyond MOST_VALUES."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # PyYAML declares it, as a variable of instances
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
        self._has_aliases = "*" in text

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:  # noqa: ARG002  # PyYAML's signature
        """Called by the C loader when it enters a value."""
        self._depth += 1
        self._values += 1
        _refuse_extent(values=self._values, levels=self._depth)

    def ascend_resolver(self) -> None:
        """Called by the C loader when it leaves a value."""
        self._depth -= 1

    def construct_document(self, node: yaml.Node) -> Any:
        """Makes a document's values, of which each alias has a part."""
        if self._has_aliases:
            _measure(node, {})
        reject_duplicate_keys(node)
        return super().construct_document(node)


def _construct_number(loader: _Loader, node: yaml.ScalarNode) -> Any:
    """`12:30` is a number to the base of 60 in YAML 1.1, and text to everyone else."""
    if ":" in node.value:
        return node.value
    return loader.construct_yaml_int(node) if node.tag.endswith("int") else loader.construct_yaml_float(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_number)


def _measure(node: yaml.Node, known: dict[int, tuple[int, int]], *, depth: int = 1) -> tuple[int, int]:
    """Values and levels of what a node expands to; raises UnusableError if they are too many, or endless."""
    _refuse_extent(values=0, levels=depth)
    if id(node) not in known:
        parts = [_measure(child, known, depth=depth + 1) for child in _children(node)]
        known[id(node)] = 1 + sum(values for values, _ in parts), 1 + max((levels for _, levels in parts), default=0)
    values, levels = known[id(node)]
    _refuse_extent(values=values, levels=levels)
    return values, levels


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _refuse_extent(*, values: int, levels: int) -> None:
    if levels > MAX_DEPTH:
        raise InvalidManifestError(f"is nested deeper than {MAX_DEPTH} levels")
    if values > MAX_VALUES:
        raise InvalidManifestError(f"holds more than {MAX_VALUES} values, or its aliases expand to more")
