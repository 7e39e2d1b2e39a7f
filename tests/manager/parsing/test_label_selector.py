"""Label selectors: what Kubernetes accepts, and what it rejects."""

import pytest

from manager.parsing.errors import BadValueError
from manager.parsing.label_selector import label_selector


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "contrail",
        "!contrail",
        "! example.com/virtual",
        "kubernetes.io/os=linux",
        "kubernetes.io/os==linux,tier!=edge",
        "zone in (a, b),pool notin (gpu)",
        "pool in ()",
        "empty=",
        " a = b , c ",
    ],
)
def test_selectors_of_kubernetes_are_accepted(text: str) -> None:
    assert label_selector(text) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        ",",
        "a,",
        "a=b=c",
        "a b",
        "-a",
        "a=-",
        "zone in a",
        "zone in (a",
        "a/b/c",
        "a=b;c",
        "!",
        f"a={'b' * 64}",
        "zonein(a)",
    ],
)
def test_others_are_rejected(text: str) -> None:
    with pytest.raises(BadValueError, match="is not a label selector"):
        label_selector(text)


def test_a_long_invalid_text_is_rejected_at_once() -> None:
    with pytest.raises(BadValueError):
        label_selector("a" * 5_000 + "!")
