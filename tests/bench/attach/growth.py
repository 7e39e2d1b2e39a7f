"""Whether a daemon grows by what it has done: many ADDs and DELs, some of them at a time."""

from typing import Any

from tests.bench.attach.concurrent_calls import attachments, run_concurrently, times
from tests.bench.attach.node import BenchNode
from tests.bench.attach.process_resources import resident

_AT_ONCE = 20  # a DEL is mostly waiting, for the kernel
_LOOKS = 5


def measure_growth(node: BenchNode, pairs: int) -> dict[str, Any]:
    """Returns what the daemon has taken after each fifth of the pairs, of one interface each."""
    rounds = max(pairs // _AT_ONCE, _LOOKS)
    report: dict[str, Any] = {}
    ended = []
    with attachments(node, "one", _AT_ONCE) as pods:
        for number in range(1, rounds + 1):
            again = [each.again() for each in pods]
            ended += run_concurrently(node, "ADD", again) + run_concurrently(node, "DEL", again)
            if number % (rounds // _LOOKS) == 0:
                report[f"after {number * _AT_ONCE} pairs"] = resident(node.daemon)
    return {**report, "calls": times(ended)}
