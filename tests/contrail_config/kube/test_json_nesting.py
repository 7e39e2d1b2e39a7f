"""Removal of deeply nested values: which remain, whatever strings contain, in linear time."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrail_config.kube.json_nesting import MAX_DEPTH, remove_deep_values

VALUES = st.recursive(
    st.none() | st.integers() | st.text('"\\[]{}:,a', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\[]{}', max_size=3), inner, max_size=3),
    max_leaves=20,
)


def flattened(value: Any, depth: int) -> Any:
    """Returns the value with None in place of what has more than `depth` levels: the reference."""
    if isinstance(value, dict):
        return {key: flattened(inner, depth - 1) for key, inner in value.items()} if depth else None
    if isinstance(value, list):
        return [flattened(inner, depth - 1) for inner in value] if depth else None
    return value


@given(VALUES, st.integers(MAX_DEPTH - 6, MAX_DEPTH + 1), st.booleans())
def test_only_values_below_the_limit_are_removed(value: Any, levels: int, ascii_only: bool) -> None:
    for _ in range(levels):
        value = {'"]}': value, "beside": "]"}
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert json.loads(remove_deep_values(text)) == flattened(value, MAX_DEPTH)


@given(st.text('"\\[]{}', max_size=200).map(str.encode))
def test_any_text_is_accepted(text: bytes) -> None:
    remove_deep_values(text)


def test_a_text_without_deep_values_is_unchanged() -> None:
    text = b"[" * MAX_DEPTH + b' {"a" ' + b"]" * MAX_DEPTH
    assert remove_deep_values(text.replace(b"{", b"")) == text.replace(b"{", b"")


def test_a_text_that_ends_within_a_removed_value_ends_there() -> None:
    assert remove_deep_values(b"[" * 2 * MAX_DEPTH + b"]") == b"[" * MAX_DEPTH + b"null"


@pytest.mark.machine
@pytest.mark.parametrize("part", [b"[]", b'\\"', b'"\\"', b'"]",', b"\\", b'"'])
def test_it_takes_linear_time(part: bytes) -> None:
    def seconds(count: int) -> float:
        text = b"[" * 100 + part * count
        started = time.process_time()
        remove_deep_values(text)
        return time.process_time() - started

    seconds(1000)
    assert seconds(500_000) < 60 * seconds(50_000)
