"""The benchmark of the web page runs; its durations are only meaningful in `scripts/bench`."""

import pytest

from tests.bench.web import main

pytestmark = pytest.mark.machine


def test_a_page_of_many_pods_is_drawn_within_its_memory() -> None:
    (measured,) = main(quick=True).values()
    assert measured["topology_drawn_s"] > 0
    assert 0 < measured["page_mib"] < 150
