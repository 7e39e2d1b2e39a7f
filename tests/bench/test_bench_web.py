"""The benchmark of the web page runs; its durations are only meaningful in `scripts/bench`."""

import pytest

from tests.bench.web import QUICK_PODS, main

pytestmark = pytest.mark.machine

_PATIENCE = 20.0
"""Seconds, on a machine that is busy with other tests."""


def test_a_page_of_many_pods_is_drawn_within_its_memory() -> None:
    (measured,) = main(quick=True).values()
    assert measured["pods"] == QUICK_PODS
    assert 0 < measured["topology_drawn_s"] < _PATIENCE
    assert 10 < measured["page_mib"] < 150
