"""Four attachments by Multus, each made by `bridge`, beside four interfaces in one call of ours.

Four in all, the cluster's default network among them: an attachment is what joins a pod to a network, whether the pod
names it or not. Pods stand long before the call: all who watch them have heard of them. For Multus there are also new
ones, made and bound just before; for those ours would wait for the manager, which is measured elsewhere.

Bridges are measured as the plugin's documentation configures them, with gateway and masquerading, so that pods get
routes that lead somewhere; our bound is of those. Plain ones, which lead nowhere, are shown beside them.
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

_MUST = 0.05  # ADD of ours, of Multus's


def measure_beside_multus(node: BenchNode, runs: int, *, binaries: Path) -> dict[str, Any]:
    """Returns medians, 99th percentiles and ratios of ours to Multus thin and thick, for each kind of bridge."""
    return {
        "bridges with gateway": _measure(node, runs, binaries, ROUTED, must=_MUST),
        "plain bridges": _measure(node, runs, binaries, PLAIN),
    }


def _measure(node: BenchNode, runs: int, binaries: Path, bridges: Mapping[str, Any], **bounds: float) -> dict[str, Any]:
    ours = Case(SHIM_4, node.shim(), node.pods("four"))
    with multus_cluster(node, bridges) as cluster, thick(cluster, binaries) as shim:
        programs = {"Multus thin": thin(cluster, binaries), "Multus thick": shim}
        stood = {name: Case(name, program, _stood(cluster, runs)) for name, program in programs.items()}
        new = {f"{name}, new pod": Case(name, program, _new(cluster)) for name, program in programs.items()}
        theirs = {**stood, **new}
        measure(node, [*theirs.values(), ours], runs)
    leases = list((node.folder / "host-local").glob("br-*/10.*"))
    return {
        "ADD": _table({name: case.add for name, case in theirs.items()}, ours.add, **bounds),
        "DEL": _table({name: case.delete for name, case in theirs.items()}, ours.delete),
        "left": {"leases": len(leases)},  # Multus's shim says of no DEL that it failed
    }


def built(script: str) -> str:
    """What a script prints that builds something once: where it is."""
    return subprocess.run([f"scripts/{script}"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _stood(cluster: MultusCluster, runs: int) -> Iterator[Pod]:
    return iter([cluster.add_pod() for _ in range(WARM_UP + runs)])


def _new(cluster: MultusCluster) -> Iterator[Pod]:
    while True:
        yield cluster.add_pod()


def _table(theirs: Mapping[str, Sequence[float]], ours: Sequence[float], **bounds: float) -> dict[str, Any]:
    rows: dict[str, Any] = {name: summary(seconds) for name, seconds in theirs.items()}
    told = summary(ours)
    ratios = {f"of {name}": round(told["median_ms"] / row["median_ms"], 3) for name, row in rows.items()}
    return {**{f"{name}, 4 of bridge": row for name, row in rows.items()}, SHIM_4: {**told, **ratios, **bounds}}
