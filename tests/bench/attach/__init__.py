"""Benchmark of ADD and DEL as processes on one node, compared with other plugins: `scripts/bench --only attach`."""

import os
from pathlib import Path
from typing import Any

from tests.bench.attach.breakdown import break_down
from tests.bench.attach.check import measure_checks
from tests.bench.attach.growth import measure_growth
from tests.bench.attach.multus import built, measure_beside_multus
from tests.bench.attach.node import bench_nodes
from tests.bench.attach.ratios import compare
from tests.bench.attach.storm import measure_large_storm, measure_storm
from tests.support.real_apiserver.server import BINARIES


def main(runs: int, *, pairs: int = 0, against: Path | None = None) -> dict[str, Any]:
    """Measures `runs` calls of each kind, a storm of pods, and with `pairs` the daemon's growth over as many calls.

    All measurements use one node, so that disturbances of the host affect all of them. `against` is another checkout,
    set up and with its shim built, whose ADD and DEL are measured in turn with those of this one.
    """
    multus = Path(built("multus"))
    os.environ.setdefault(BINARIES, built("kube-apiserver"))
    with bench_nodes(against) as (node, *others):
        report = {
            "side by side": compare(node, others, runs),
            "one ADD": break_down(node, runs),
            "CHECK": measure_checks(node, runs),
            "storm": measure_storm(node),
            "large storm": measure_large_storm(node),
            "beside Multus": measure_beside_multus(node, runs, binaries=multus),
        }
        if pairs:
            report["growth"] = measure_growth(node, pairs)
    return report
