"""Storm: many concurrent pods, while as many others wait for a network that never appears."""

from typing import Any

from tests.bench.attach.concurrent_calls import attachments, run_concurrently, start, status_of, times
from tests.bench.attach.node import PODS, BenchNode, wait_until
from tests.bench.attach.process_resources import resident

_MOST_SECONDS = 0.5  # maximum of the 99th percentile of ADD
_MOST_MIB = 60


def measure_storm(node: BenchNode) -> dict[str, Any]:
    """Attaches and detaches PODS pods of three interfaces concurrently; then deletes the waiting ones."""
    with attachments(node, "never", PODS) as waiting, attachments(node, "three", PODS) as attached:
        waiters = [start(node, "ADD", each) for each in waiting]
        wait_until(lambda: len(node.attachments()) == PODS, what="waiting calls")
        added = run_concurrently(node, "ADD", attached)
        deleted = run_concurrently(node, "DEL", attached)
        cancelled = run_concurrently(node, "DEL", waiting)
        statuses = [status_of(pid) for pid in waiters]
        links = [name for name in node.namespace.links() if name.startswith("tap")]
        return {
            f"{PODS} ADDs of 3 interfaces": {**times(added), "p99 must": _MOST_SECONDS * 1000},
            f"{PODS} DELs of 3 interfaces": times(deleted),
            f"{PODS} DELs of what waits": {**times(cancelled), "ADDs that failed": sum(statuses)},
            "left": {"records": len(node.attachments()), "links": len(links)},
            "daemon": {**resident(node.daemon), "must": _MOST_MIB},
        }
