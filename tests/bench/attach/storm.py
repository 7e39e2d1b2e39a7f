"""Many pods at once, while as many others wait for a network that never comes."""

from typing import Any

from tests.bench.attach.concurrent_calls import attachments, run_concurrently, start, status_of, times
from tests.bench.attach.node import PODS, BenchNode, wait_until
from tests.bench.attach.process_resources import resident

_MOST_SECONDS = 0.5  # that the 99th percentile of ADD may take
_MOST_MIB = 60


def measure_storm(node: BenchNode) -> dict[str, Any]:
    """Attaches PODS pods of three interfaces at once and detaches them; those that wait are given up at the end."""
    with attachments(node, "never", PODS) as waiting, attachments(node, "three", PODS) as coming:
        waiters = [start(node, "ADD", each) for each in waiting]
        wait_until(lambda: len(node.attachments()) == PODS, what="the calls that wait")
        added = run_concurrently(node, "ADD", coming)
        deleted = run_concurrently(node, "DEL", coming)
        given_up = run_concurrently(node, "DEL", waiting)
        in_vain = [status_of(pid) for pid in waiters]
        links = [name for name in node.namespace.links() if name.startswith("tap")]
        return {
            f"{PODS} ADDs of 3 interfaces": {**times(added), "p99 must": _MOST_SECONDS * 1000},
            f"{PODS} DELs of 3 interfaces": times(deleted),
            f"{PODS} DELs of what waits": {**times(given_up), "ADDs that failed": sum(in_vain)},
            "left": {"records": len(node.attachments()), "links": len(links)},
            "daemon": {**resident(node.daemon), "must": _MOST_MIB},
        }
