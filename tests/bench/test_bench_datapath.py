"""The benchmark of the datapath runs; its figures are only meaningful in `scripts/bench`."""

import pytest

from tests.bench.datapath import main as measure_datapath

pytestmark = pytest.mark.machine


def test_every_part_is_measured_and_nothing_is_lost() -> None:
    measured = measure_datapath(2, quick=True)
    assert {rate["Gbit/s"] > 0 for rate in measured["TCP on one node"].values()} == {True}
    assert {call["median_ms"] > 0 for call in measured["ADD"].values()} == {True}
    assert measured["many networks"]["network no. 20"]["ms of processor"] > 0
    assert measured["kill -9"]["2 kills"]["lost"] == 0, measured["kill -9"]
