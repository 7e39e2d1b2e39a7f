"""Resource growth of the daemon over many concurrent ADDs and DELs."""

from typing import Any

from tests.bench.attach.concurrent_calls import attachments, run_concurrently, times
from tests.bench.attach.node import BenchNode
from tests.bench.attach.process_resources import resident

_AT_ONCE = 20  # a DEL mostly waits for the kernel
_SAMPLES = 5


def measure_growth(node: BenchNode, pairs: int) -> dict[str, Any]:
    """Returns the daemon's resources after each fifth of the pairs of ADD and DEL, with one interface each."""
    rounds = max(pairs // _AT_ONCE, _SAMPLES)
    report: dict[str, Any] = {}
    ended = []
    with attachments(node, "one", _AT_ONCE) as pods:
        for number in range(1, rounds + 1):
            again = [each.again() for each in pods]
            ended += run_concurrently(node, "ADD", again) + run_concurrently(node, "DEL", again)
            if number % (rounds // _SAMPLES) == 0:
                report[f"after {number * _AT_ONCE} pairs"] = resident(node.daemon)
    return {**report, "calls": times(ended)}
