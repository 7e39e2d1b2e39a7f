"""The latency benchmark runs; its durations are only meaningful in `scripts/bench`."""

import pytest

from tests.bench.kubernetes.latency import main as measure_latency

pytestmark = pytest.mark.machine


def test_each_pod_needs_few_writes() -> None:
    measured = measure_latency(quick=True)
    assert measured["writes of a pod"]["POST virtualmachines"] == 1
    assert measured["writes of a pod"]["PATCH pods/status"] == 1
    assert measured["writes of a pod"]["without events"] <= 4
