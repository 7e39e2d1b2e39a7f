"""Pods as arguments: names that no pod can have reach no API server."""

import pytest

from contrailctl.errors import UsageError
from contrailctl.pod_key import parse_pod_key


@pytest.mark.parametrize("text", ["demo/web", "kube-system/static-node-1.example", "1/2"])
def test_namespace_and_name_are_returned(text: str) -> None:
    assert "/".join(parse_pod_key(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "web", "demo/", "/web", "a/b/c", "../web", "demo/..", "demo/\x1b[31mred", "demo/web?watch=1", "Demo/web"],
)
def test_names_that_no_pod_can_have_are_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="must be NAMESPACE/NAME"):
        parse_pod_key(text)


def test_the_message_about_a_long_name_is_short() -> None:
    with pytest.raises(UsageError) as raised:
        parse_pod_key(f"demo/{'x' * 100_000}")
    assert len(str(raised.value)) < 300
