"""The benchmark of pods beside NADs runs; its durations are only meaningful in `scripts/bench`."""

import pytest

from tests.bench.kubernetes.nads import main as measure_nads

pytestmark = pytest.mark.machine


def test_every_pod_is_served_beside_nads() -> None:
    measured = measure_nads(quick=True)
    assert len(measured) == 4
    assert all(row["median_ms"] > 0 for row in measured.values())
