"""Annotations are strings; YAML values as in the multi-network design become their JSON text."""

from typing import Any

import pytest

from manager.manifests.objects import annotation_texts
from manager.parsing.errors import BadValueError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        ("", ""),
        (True, "true"),
        (False, "false"),
        (5, "5"),
        (1.5, "1.5"),
        (["10.1.1.0/24"], '["10.1.1.0/24"]'),
        ([], "[]"),
        (["é"], '["é"]'),
    ],
)
def test_simple_values_become_their_json_text(value: Any, text: str) -> None:
    assert annotation_texts({"key": value}) == {"key": text}


def test_absent_annotations_are_empty() -> None:
    assert annotation_texts(None) == {}


@pytest.mark.parametrize("value", [None, {}, {"a": "b"}, [5], [["x"]], [None], float("inf"), float("nan")])
def test_other_values_are_rejected_with_key_and_value(value: Any) -> None:
    with pytest.raises(BadValueError) as caught:
        annotation_texts({"good": "x", "opencontrail.org/cidr": value})
    assert (
        str(caught.value) == f"metadata.annotations: opencontrail.org/cidr: {value!r} is not a string: put it in quotes"
    )
