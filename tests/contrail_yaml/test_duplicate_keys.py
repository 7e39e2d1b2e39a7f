"""Duplicate keys are rejected in YAML and JSON, with the path in YAML; documents without any are accepted."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from contrail_yaml.duplicate_keys import reject_duplicate_keys, unique_keys
from contrail_yaml.errors import DuplicateKeyError, YamlError
from contrail_yaml.file import read_yaml

KEYS = st.text(min_size=1, max_size=3)
TREES = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def composed(text: str) -> yaml.Node:
    node = yaml.compose(text, Loader=yaml.CSafeLoader)
    assert node is not None
    return node


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "a: duplicate key, in line 1 and in line 3"),
        ("a:\n  b: 1\n  c: 2\n  b: 1\n", "a.b: duplicate key, in line 2 and in line 4"),
        ("- x\n- a:\n    - b: 1\n      b: 2\n", "[1].a[0].b: duplicate key, in line 3 and in line 4"),
        ("a: {b: 1, b: 2}\n", "a.b: duplicate key, in line 1 and in line 1"),
        ("a: 1\n'a': 2\n", "a: duplicate key, in line 1 and in line 2"),
        ("1: x\n1: y\n", "1: duplicate key, in line 1 and in line 2"),
        ("a: {b.c/d: 1,\n  b.c/d: 2}\n", 'a."b.c/d": duplicate key, in line 1 and in line 2'),
        ('"a\\nb": 1\n"a\\nb": 2\n', '"a\\nb": duplicate key, in line 1 and in line 2'),
        (f"{'k' * 99}: 1\n{'k' * 99}: 2\n", f'"{"k" * 80}": duplicate key, in line 1 and in line 2'),
        ("? [a, b]\n: {c: 1, c: 2}\n", "?.c: duplicate key, in line 2 and in line 2"),
        ("a: &a {b: 1}\nc: {<<: *a, d: 1,\n  d: 2}\n", "c.d: duplicate key, in line 2 and in line 3"),
        ("a: &a {b: 1, b: 2}\nc: *a\n", "a.b: duplicate key, in line 1 and in line 1"),
    ],
)
def test_a_duplicate_key_is_named_with_its_path_and_both_lines(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(text)
    with pytest.raises(YamlError) as caught:
        read_yaml(str(file))
    assert str(caught.value) == f"{file}: {said}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: {b: 1}\nc: {b: 1}\n", {"a": {"b": 1}, "c": {"b": 1}}),
        ("[{a: 1}, {a: 1}]", [{"a": 1}, {"a": 1}]),
        ("a: a\nb: a\n", {"a": "a", "b": "a"}),
        ("1: x\n'1': y\n", {1: "x", "1": "y"}),
        ("base: &b {x: 1}\nown: {<<: *b, x: 2}\n", {"base": {"x": 1}, "own": {"x": 2}}),
        ("one: &o {x: 1}\nother: &t {y: 1}\nown: {<<: *o, <<: *t}\n",
         {"one": {"x": 1}, "other": {"y": 1}, "own": {"x": 1, "y": 1}}),
    ],
)  # fmt: skip
def test_keys_that_are_not_duplicates_are_accepted(tmp_path: Path, text: str, value: Any) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(text)
    assert read_yaml(str(file)) == value


def test_a_node_with_many_aliases_is_checked_once() -> None:
    text = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))
    reject_duplicate_keys(composed(text))


def test_a_node_that_contains_itself_is_checked_once() -> None:
    reject_duplicate_keys(composed("&a {b: *a, c: [*a]}"))


@given(TREES)
def test_any_document_without_duplicates_is_accepted(tree: Any) -> None:
    reject_duplicate_keys(composed(yaml.safe_dump(tree, allow_unicode=True)))


@given(st.lists(st.one_of(KEYS, st.integers(0, 5)), max_size=4), TREES, KEYS)
def test_a_duplicate_key_is_found_at_any_depth(steps: list[str | int], tree: Any, key: str) -> None:
    """Each step of the path is a list with that many items before the node, or a mapping with one key."""
    node = yaml.MappingNode("tag:yaml.org,2002:map", [])
    node.value = [(_written(key), _written(tree)), (_written(key), _written(tree))]
    for step in reversed(steps):
        node = _around(node, step)
    with pytest.raises(DuplicateKeyError, match="duplicate key, in line 1 and in line 1"):
        reject_duplicate_keys(node)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "a: duplicate key"),
        ('[{"x": {"b c": 1, "b c": 1}}]', '"b c": duplicate key'),
        (json.dumps({"k" * 99: 1})[:-1] + f', "{"k" * 99}": 2}}', f'"{"k" * 80}": duplicate key'),
    ],
)
def test_a_duplicate_key_in_json_is_named(text: str, message: str) -> None:
    with pytest.raises(DuplicateKeyError) as raised:
        json.loads(text, object_pairs_hook=unique_keys)
    assert str(raised.value) == message


@given(TREES)
def test_any_json_without_duplicates_is_decoded(tree: Any) -> None:
    assert json.loads(json.dumps(tree), object_pairs_hook=unique_keys) == tree


def _written(value: Any) -> yaml.Node:
    return composed(yaml.safe_dump(value, default_flow_style=True, width=10**9))


def _around(node: yaml.Node, step: str | int) -> Any:
    if isinstance(step, int):
        return yaml.SequenceNode("tag:yaml.org,2002:seq", [_written(0)] * step + [node])
    return yaml.MappingNode("tag:yaml.org,2002:map", [(_written(step), node)])
