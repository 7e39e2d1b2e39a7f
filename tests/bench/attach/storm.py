"""Storms: many concurrent calls, some of them while other ADDs wait for a network that never appears."""

from typing import Any

from tests.bench.attach.concurrent_calls import attachments, run_concurrently, start, status_of, times
from tests.bench.attach.node import PODS, BenchNode, wait_until
from tests.bench.attach.process_resources import resident

_CALLS = 100
_MOST_SECONDS = 0.5  # maximum of the 99th percentile of ADD
_MOST_MIB = 60


def measure_storm(node: BenchNode) -> dict[str, Any]:
    """Attaches and detaches 100 pods of three interfaces concurrently; then deletes as many waiting ones."""
    with attachments(node, "never", _CALLS) as waiting, attachments(node, "three", _CALLS) as attached:
        waiters = [start(node, "ADD", each) for each in waiting]
        wait_until(lambda: len(node.attachments()) == _CALLS, what="waiting calls")
        added = run_concurrently(node, "ADD", attached)
        deleted = run_concurrently(node, "DEL", attached)
        cancelled = run_concurrently(node, "DEL", waiting)
        statuses = [status_of(pid) for pid in waiters]
        return {
            f"{_CALLS} ADDs of 3 interfaces": {**times(added), "p99 must": _MOST_SECONDS * 1000},
            f"{_CALLS} DELs of 3 interfaces": times(deleted),
            f"{_CALLS} DELs of what waits": {**times(cancelled), "ADDs that failed": sum(statuses)},
            "left": _left(node),
            "daemon": {**resident(node.daemon), "must": _MOST_MIB},
        }


def measure_large_storm(node: BenchNode) -> dict[str, Any]:
    """Attaches and detaches 500 pods of one interface concurrently; then lets as many wait, and deletes them."""
    calls = PODS["one"]
    with attachments(node, "one", calls) as attached:
        added = run_concurrently(node, "ADD", attached)
        deleted = run_concurrently(node, "DEL", attached)
    with attachments(node, "never", PODS["never"]) as waiting:
        waiters = [start(node, "ADD", each) for each in waiting]
        wait_until(lambda: len(node.attachments()) == len(waiting), what="waiting calls")
        daemon = resident(node.daemon)
        cancelled = run_concurrently(node, "DEL", waiting)
        statuses = [status_of(pid) for pid in waiters]
    return {
        f"{calls} ADDs": times(added),
        f"{calls} DELs": times(deleted),
        f"{len(waiting)} DELs of what waits": {**times(cancelled), "ADDs that failed": sum(statuses)},
        "left": _left(node),
        f"daemon while {len(waiting)} ADDs wait": daemon,
    }


def _left(node: BenchNode) -> dict[str, int]:
    links = [name for name in node.namespace.links() if name.startswith("tap")]
    return {"records": len(node.attachments()), "links": len(links)}
