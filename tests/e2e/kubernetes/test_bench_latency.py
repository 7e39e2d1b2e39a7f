"""The benchmark of a bound pod's list runs; its numbers are for `scripts/bench`."""

from tests.bench.kubernetes.latency import main as measure_latency


def test_each_pod_needs_few_writes() -> None:
    measured = measure_latency(quick=True)
    assert measured["writes of a pod"]["POST virtualmachines"] == 1
    assert measured["writes of a pod"]["PATCH pods/status"] == 1
    assert measured["writes of a pod"]["all"] < 3.2
