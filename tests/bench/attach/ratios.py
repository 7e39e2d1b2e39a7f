"""Sequential calls of each plugin in random order, and their ratios to `bridge` and to another checkout."""

import random
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.attach.node import BenchNode, Pod
from tests.bench.process_timing import Program, summary
from tests.support.netns import Netns

WARM_UP = 3

SHIM_1, SHIM_4 = "shim and daemon, 1 interface", "shim and daemon, 4 interfaces"
BOUNDS = {
    (SHIM_1, "ADD"): (0.40, 0.33),
    (SHIM_4, "ADD"): (0.58, 0.50),
    (SHIM_4, "DEL"): (1.00, 0.75),
}
"""Maximum and target of the ratio to one call of `bridge`."""


@dataclass
class Case:
    """A plugin, its node, the pods that it attaches, and the measured seconds."""

    name: str
    node: BenchNode
    program: Program
    pods: Iterator[Pod]
    add: list[float] = field(default_factory=list)
    delete: list[float] = field(default_factory=list)


def compare(node: BenchNode, others: Sequence[BenchNode], runs: int) -> dict[str, Any]:
    """Returns medians, 99th percentiles and ratios to one call of `bridge`; `others` are of another checkout."""
    cases = [
        Case("bridge", node, node.bridge(), node.pods("one")),
        Case("entry point, 1 interface", node, node.entry_point(), node.pods("one")),
        Case("entry point, 4 interfaces", node, node.entry_point(), node.pods("four")),
        Case(SHIM_1, node, node.shim(), node.pods("one")),
        Case(SHIM_4, node, node.shim(), node.pods("four")),
    ]
    for other in others:
        cases += [
            Case(_other(SHIM_1), other, other.shim(), other.pods("one")),
            Case(_other(SHIM_4), other, other.shim(), other.pods("four")),
        ]
    measure(cases, runs)
    return {"bare interpreter": summary(_bare_interpreter(node, runs)), **_report(cases)}


def measure(cases: Sequence[Case], runs: int) -> None:
    """Measures each case `runs` times after discarded warm-up runs.

    The order is random in each run, since the state of the processor's caches depends on the previous case.
    """
    for number in range(-WARM_UP, runs):
        for case in random.sample(cases, len(cases)):
            added, deleted = attach_and_detach(case.node, case.program, next(case.pods))
            if number >= 0:
                case.add.append(added)
                case.delete.append(deleted)


def attach_and_detach(node: BenchNode, program: Program, pod: Pod) -> tuple[float, float]:
    """Returns the durations of ADD and DEL in a new sandbox, in seconds."""
    sandbox = Netns("bench")
    container = uuid.uuid4().hex * 2
    try:
        added = program.run(node.environment("ADD", sandbox.path, container, *pod))
        deleted = program.run(node.environment("DEL", sandbox.path, container, *pod))
    finally:
        sandbox.delete()
    return added, deleted


def _bare_interpreter(node: BenchNode, runs: int) -> list[float]:
    command = [sys.executable, "-I", "-S", "-c", "pass"]
    program = Program(command, Path("/dev/null"), node.folder / "bare.out", node.folder / "bare.err")
    return [program.run({}) for _ in range(runs)]


def _report(cases: list[Case]) -> dict[str, Any]:
    report: dict[str, Any] = {case.name: {"ADD": summary(case.add), "DEL": summary(case.delete)} for case in cases}
    peer = report["bridge"]
    for case in cases[1:]:
        other = report.get(_other(case.name), {})
        for command, measured in report[case.name].items():
            measured["of one bridge call"] = round(measured["median_ms"] / peer[command]["median_ms"], 2)
            if other:
                measured["of the other checkout"] = round(measured["median_ms"] / other[command]["median_ms"], 3)
            if bounds := BOUNDS.get((case.name, command)):
                measured["must"], measured["aim"] = bounds
    return report


def _other(name: str) -> str:
    return f"{name}, other checkout"
