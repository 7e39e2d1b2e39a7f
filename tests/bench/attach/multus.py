"""Comparison of four attachments by Multus with `bridge`, and four interfaces in one call of this plugin.

The four include the cluster's default network. Pods exist long before the call, so that all watches have delivered
them. For Multus, new pods, created and bound just before, are measured, too; for these, this plugin would wait for the
manager, which other benchmarks measure.

Bridges are configured as in the plugin's documentation, with gateway and masquerading, so that pods get usable routes;
the bound applies to those. Plain bridges without routes are measured for comparison.
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.attach.multus_cluster import PLAIN, ROUTED, MultusCluster, multus_cluster
from tests.bench.attach.multus_kinds import thick, thin
from tests.bench.attach.node import BenchNode, Pod
from tests.bench.attach.ratios import SHIM_4, WARM_UP, Case, measure
from tests.bench.process_timing import summary

_MUST = 0.05  # maximum ratio of this plugin's ADD to that of Multus


def measure_beside_multus(node: BenchNode, runs: int, *, binaries: Path) -> dict[str, Any]:
    """Returns medians, 99th percentiles and ratios to Multus thin and thick, for each kind of bridge."""
    return {
        "bridges with gateway": _measure(node, runs, binaries, ROUTED, must=_MUST),
        "plain bridges": _measure(node, runs, binaries, PLAIN),
    }


def _measure(node: BenchNode, runs: int, binaries: Path, bridges: Mapping[str, Any], **bounds: float) -> dict[str, Any]:
    ours = Case(SHIM_4, node, node.shim(), node.pods("four"))
    with multus_cluster(node, bridges) as cluster, thick(cluster, binaries) as shim:
        programs = {"Multus thin": thin(cluster, binaries), "Multus thick": shim}
        existing = {name: Case(name, node, program, _existing(cluster, runs)) for name, program in programs.items()}
        new = {f"{name}, new pod": Case(name, node, program, _new(cluster)) for name, program in programs.items()}
        theirs = {**existing, **new}
        measure([*theirs.values(), ours], runs)
    leases = list((node.folder / "host-local").glob("br-*/10.*"))
    return {
        "ADD": _table({name: case.add for name, case in theirs.items()}, ours.add, **bounds),
        "DEL": _table({name: case.delete for name, case in theirs.items()}, ours.delete),
        "left": {"leases": len(leases)},  # Multus's shim reports no failed DEL
    }


def built(script: str) -> str:
    """Runs a build script and returns the path that it prints."""
    return subprocess.run([f"scripts/{script}"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _existing(cluster: MultusCluster, runs: int) -> Iterator[Pod]:
    return iter([cluster.add_pod() for _ in range(WARM_UP + runs)])


def _new(cluster: MultusCluster) -> Iterator[Pod]:
    while True:
        yield cluster.add_pod()


def _table(theirs: Mapping[str, Sequence[float]], ours: Sequence[float], **bounds: float) -> dict[str, Any]:
    rows: dict[str, Any] = {name: summary(seconds) for name, seconds in theirs.items()}
    own = summary(ours)
    ratios = {f"of {name}": round(own["median_ms"] / row["median_ms"], 3) for name, row in rows.items()}
    return {**{f"{name}, 4 of bridge": row for name, row in rows.items()}, SHIM_4: {**own, **ratios, **bounds}}
