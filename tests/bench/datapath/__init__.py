"""Benchmark of the datapath of one node, compared with plain bridges: `scripts/bench --only datapath`."""

from typing import Any

from tests.bench.datapath.attachment import measure_attachment
from tests.bench.datapath.kills import measure_kills
from tests.bench.datapath.many_networks import measure_many_networks
from tests.bench.datapath.throughput import measure_throughput


def main(runs: int, *, quick: bool = False) -> dict[str, Any]:
    """Measures throughput, ADD with `runs` calls of each kind, many networks, and packets lost by kills.

    `quick` only shows that everything runs.
    """
    return {
        "TCP on one node": measure_throughput(rounds=1 if quick else 5, seconds=0.05 if quick else 2.0),
        "ADD": measure_attachment(2 if quick else runs),
        "many networks": measure_many_networks(20 if quick else 500),
        "kill -9": measure_kills(2 if quick else 20),
    }
