"""Token buckets of namespaces: bounded in number, and those that are used stay."""

import pytest

from manager import namespace_buckets
from manager.namespace_buckets import MAX_NAMESPACES, NamespaceBuckets
from tests.support.fake_clock import FakeClock


def test_the_number_of_namespaces_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace_buckets, "MAX_NAMESPACES", 10)
    buckets = NamespaceBuckets(rate=1, burst=1, clock=FakeClock())
    for number in range(11):
        assert buckets.of(f"n{number}").take()
        assert buckets.of("always").take() is (number == 0)
    assert len(buckets) == 10
    assert MAX_NAMESPACES == 4096
