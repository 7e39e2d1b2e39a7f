"""Benchmark of networks that span nodes, which are network namespaces on one fabric: `scripts/bench --only network`."""

from collections.abc import Callable
from typing import Any

from tests.bench.network.churn import WARM_UP, measure_churn
from tests.bench.network.programming import measure_programming
from tests.bench.network.restarts import measure_restarts
from tests.bench.network.resync import measure_resync
from tests.bench.network.throughput import measure_throughput
from tests.bench.network.watches import measure_watches

PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "tcp": lambda quick: measure_throughput(rounds=1 if quick else 5, seconds=0.05 if quick else 2.0),
    "programming": lambda quick: measure_programming(rounds=1 if quick else 5, pods=30 if quick else 300),
    "resync": lambda quick: measure_resync(500 if quick else 10_000),
    "restarts": lambda quick: measure_restarts(1 if quick else 5),
    "churn": lambda quick: measure_churn(warm_up=1.0 if quick else WARM_UP, seconds=1.0 if quick else 10.0),
    "watches": lambda quick: measure_watches(quick=quick),
}


def main(part: str | None = None, *, quick: bool = False) -> dict[str, Any]:
    """Measures one part, or all. `quick` only shows that everything runs."""
    return {name: measure(quick) for name, measure in PARTS.items() if part in (None, name)}
