"""ADD on a node whose kernel connects the pods, next to one `bridge` ADD and to ADD on a node without datapath.

Another pod is on each node all the time, and in each network: only the first pod of a node, or of a network on it,
waits for what all pods share, and `bridge` has its bridge from the warm-up on.
"""

from contextlib import ExitStack
from typing import Any

from tests.bench.attach.concurrent_calls import attachments, run_concurrently
from tests.bench.attach.node import BenchNode, datapath_nodes
from tests.bench.attach.ratios import Case, measure
from tests.bench.process_timing import summary

BOUNDS = (0.40, 0.33)
"""Maximum and target of the ratio of one interface to one ADD of `bridge`."""

_KINDS = {"one": "1 interface", "two": "2 interfaces, one of them in a network"}


def measure_attachment(runs: int) -> dict[str, Any]:
    """Measures `runs` ADDs of each kind, in random order."""
    with datapath_nodes() as nodes, ExitStack() as residents:
        for node in nodes.values():
            attached = residents.enter_context(attachments(node, "three", 1))
            run_concurrently(node, "ADD", attached)
            residents.callback(run_concurrently, node, "DEL", attached)
        bridge = Case("bridge", nodes["linux"], nodes["linux"].bridge(), nodes["linux"].pods("one"))
        cases = {(kind, datapath): _case(node, kind) for kind in _KINDS for datapath, node in nodes.items()}
        measure([bridge, *cases.values()], runs)
    return {"bridge": summary(bridge.add)} | {
        f"{name}, datapath {datapath}": _summary(cases[kind, datapath], bridge, cases[kind, "none"])
        for kind, name in _KINDS.items()
        for datapath in nodes
    }


def _case(node: BenchNode, kind: str) -> Case:
    return Case(kind, node, node.shim(), node.pods(kind))


def _summary(case: Case, bridge: Case, without: Case) -> dict[str, float]:
    measured = summary(case.add)
    median = measured["median_ms"]
    report = {**measured, "of one bridge call": round(median / summary(bridge.add)["median_ms"], 2)}
    if case is without:
        return report
    report["share of the datapath, ms"] = round(median - summary(without.add)["median_ms"], 2)
    if case.name == "one":
        report["must"], report["aim"] = BOUNDS
    return report
