"""YAML as kubectl accepts it, with only the types of JSON; any bytes are parsed or rejected."""

import contextlib
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from manager.manifests.documents import MAX_DEPTH, parse_documents
from manager.manifests.errors import InvalidManifestError


def parse_yaml(text: str) -> list[Any]:
    return parse_documents(text.encode(), is_json=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30", "12:30"),
        ("1:30:15.5", "1:30:15.5"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("=", "="),
        ("0x10", 16),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("yes", True),
        ("False", False),
        ("~", None),
        ("'5'", "5"),
    ],
)
def test_plain_scalars_have_the_types_of_json(text: str, value: Any) -> None:
    assert parse_yaml(f"a: {text}") == [{"a": value}]


@pytest.mark.parametrize("tag", ["!!bool x", "!!int x", "!!float x", "!!timestamp 2024-01-01", "!!binary YQ==", "!x y"])
def test_explicit_tags_beyond_json_are_rejected(tag: str) -> None:
    with pytest.raises(InvalidManifestError):
        parse_yaml(f"a: {tag}")


def test_aliases_and_merge_keys_are_resolved() -> None:
    text = "base: &base {a: 1, b: 2}\nmore: {<<: *base, b: 3}\nagain: *base\n"
    assert parse_yaml(text) == [{"base": {"a": 1, "b": 2}, "more": {"a": 1, "b": 3}, "again": {"a": 1, "b": 2}}]


@pytest.mark.parametrize("text", ["a: 1\na: 2", "{a: 1, b: 2, a: 3}", "base: &b {x: 1}\nmore: {<<: *b, y: 1, y: 2}"])
def test_a_duplicate_key_in_yaml_is_rejected(text: str) -> None:
    with pytest.raises(InvalidManifestError, match=r"not valid YAML: (a|more.y): duplicate key, in line"):
        parse_yaml(text)


@pytest.mark.parametrize("text", ['{"kind": "Pod", "kind": "Pod"}', '{"a": [{"b": 1, "kind": 2, "b": 3, "kind": 4}]}'])
def test_a_duplicate_key_in_json_is_rejected(text: str) -> None:
    with pytest.raises(InvalidManifestError, match=r"is not valid JSON: (kind|b): duplicate key"):
        parse_documents(text.encode(), is_json=True)


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40)),
        "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 1000)),
        "- " * 1_000_000 + "a",
        "{a: " * 1_000_000,
    ],
    ids=["merged", "chained", "nested", "flow"],
)
def test_documents_that_would_exhaust_memory_or_stack_are_rejected(text: str) -> None:
    with pytest.raises(InvalidManifestError, match=r"nested deeper than|more than"):
        parse_yaml(text)


def test_values_are_counted_over_all_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manager.manifests.documents.MAX_VALUES", 10)
    assert parse_yaml("[1, 2, 3, 4]\n---\n[1, 2, 3, 4]")
    with pytest.raises(InvalidManifestError, match="more than 10 values"):
        parse_yaml("[1, 2, 3, 4]\n---\n[1, 2, 3, 4, 5]")


def test_nesting_is_allowed_up_to_the_limit() -> None:
    assert parse_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(InvalidManifestError):
        parse_yaml("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a": ' + "9" * 5000 + "}", '{"a": "\\ud800"}', '{"a": NaN}', "{} {}"]
)
def test_invalid_json_is_rejected(text: str) -> None:
    with pytest.raises(InvalidManifestError):
        parse_documents(text.encode(), is_json=True)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(categories=("L", "N", "P", "Zs"))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc0:-~ ", max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(json_values, max_size=3))
def test_documents_round_trip(documents: list[Any]) -> None:
    assert parse_yaml(yaml.safe_dump_all(documents, allow_unicode=True)) == documents
    for document in documents:
        assert parse_documents(json.dumps(document).encode(), is_json=True) == [document]


@given(
    st.binary(max_size=200) | st.text(alphabet="a1:-[]{}&*!|>'\"\n\t #,?%<~", max_size=80).map(str.encode),
    st.booleans(),
)
def test_any_bytes_are_parsed_or_rejected(content: bytes, is_json: bool) -> None:
    with contextlib.suppress(InvalidManifestError):
        parse_documents(content, is_json=is_json)
