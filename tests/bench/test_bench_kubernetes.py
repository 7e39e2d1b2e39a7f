"""Benchmarks of the manager on a scripted API server run; their durations are only meaningful in `scripts/bench`."""

import pytest

from tests.bench.kubernetes.events import main as measure_events
from tests.bench.kubernetes.reconcile import main as measure_reconcile

pytestmark = pytest.mark.machine


def test_a_restart_writes_nothing() -> None:
    measured = measure_reconcile(quick=True)["1000 pods x 3"]
    assert measured["first start, all written"]["writes_per_pod"] < 3
    assert measured["restart, all there"]["writes"] == 0
    assert measured["GET /v1/pods, all pages"]["pods"] == 1000


def test_events_are_processed() -> None:
    measured = measure_events(quick=True)
    assert {rate["events_per_s"] > 0 for rate in measured.values()} == {True}
