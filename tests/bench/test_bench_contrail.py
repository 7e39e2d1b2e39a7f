"""The benchmark of the store on a Contrail API server runs; its durations are only meaningful in `scripts/bench`."""

import pytest

from tests.bench.contrail_store import main as measure_contrail

pytestmark = pytest.mark.machine


def test_a_pod_of_three_interfaces_takes_at_most_thirteen_requests() -> None:
    writes, restart = measure_contrail(quick=True).values()
    assert 0 < writes["requests_per_pod"] <= 13
    assert writes["pods_per_s"] > 0
    assert set(restart) == {"read_s", "compared_s"}
