"""CHECK of a pod with 64 interfaces, which look at the sandbox once in all, next to one of a single interface."""

import json
import uuid
from typing import Any

from tests.bench.attach.node import BenchNode, Pod
from tests.bench.process_timing import Program, summary
from tests.support.netns import Netns

_LARGE = "64 interfaces"
_KINDS = {"1 interface": "one", _LARGE: "sixty-four"}
_MOST_MS = 50.0


def measure_checks(node: BenchNode, runs: int) -> dict[str, Any]:
    """Returns median and 99th percentile of so many CHECKs of a pod of each kind, in milliseconds."""
    report = {name: summary(_checks(node, next(node.pods(kind)), runs)) for name, kind in _KINDS.items()}
    report[_LARGE]["median must"] = _MOST_MS
    return report


def _checks(node: BenchNode, pod: Pod, runs: int) -> list[float]:
    sandbox, container = Netns("bench"), uuid.uuid4().hex * 2
    program = node.shim("check")
    configuration = program.stdin.read_text()
    try:
        program.run(node.environment("ADD", sandbox.path, container, *pod))
        _add_previous_result(program)
        checked = [program.run(node.environment("CHECK", sandbox.path, container, *pod)) for _ in range(runs)]
        program.stdin.write_text(configuration)
        program.run(node.environment("DEL", sandbox.path, container, *pod))
    finally:
        sandbox.delete()
    return checked


def _add_previous_result(program: Program) -> None:
    """Puts the result of ADD into the configuration, as runtimes do."""
    result = json.loads(program.stdout.read_text())
    configuration = json.loads(program.stdin.read_text())
    program.stdin.write_text(json.dumps({**configuration, "prevResult": result}))
