"""ADD and DEL as whole processes on one node, side by side with their peers: `scripts/bench --only attach`."""

import os
from pathlib import Path
from typing import Any

from tests.bench.attach.breakdown import break_down
from tests.bench.attach.growth import measure_growth
from tests.bench.attach.multus import built, measure_beside_multus
from tests.bench.attach.node import bench_node
from tests.bench.attach.ratios import compare
from tests.bench.attach.storm import measure_storm
from tests.support.real_apiserver.server import BINARIES


def main(runs: int, *, pairs: int = 0) -> dict[str, Any]:
    """Measures `runs` calls of each kind, a storm, and with `pairs` whether that many ADDs and DELs make anything grow.

    All on one node, so that what disturbs the machine disturbs all alike.
    """
    multus = Path(built("multus"))
    os.environ.setdefault(BINARIES, built("kube-apiserver"))
    with bench_node() as node:
        report = {
            "side by side": compare(node, runs),
            "one ADD": break_down(node, runs),
            "storm": measure_storm(node),
            "beside Multus": measure_beside_multus(node, runs, binaries=multus),
        }
        if pairs:
            report["growth"] = measure_growth(node, pairs)
    return report
