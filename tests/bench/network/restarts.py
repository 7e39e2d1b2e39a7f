"""What pods on three nodes lose while agents and daemons are killed, and stopped and started again as by an upgrade."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tests.bench.built_apiserver import build_apiserver
from tests.e2e.across_nodes.attached_pods import (
    NETWORK,
    Pod,
    all_reach_each_other,
    attached,
    start_daemon_again,
    traffic,
)
from tests.e2e.across_nodes.cluster import Cluster, cluster_of
from tests.e2e.across_nodes.node import Node

_SUBNETS = "10.7.0.0/16,fd07::/64"


def measure_restarts(rounds: int) -> dict[str, Any]:
    """In each round agent and daemon of every node end once, first by SIGKILL, then by SIGTERM."""
    build_apiserver()
    with cluster_of(3) as cluster, ExitStack() as stack:
        cluster.add_nad(NETWORK, cidr=_SUBNETS)
        pods = [stack.enter_context(attached(cluster, f"on-{node.name}", node)) for node in cluster.nodes]
        all_reach_each_other(pods)
        ends = rounds * 2 * len(cluster.nodes)
        return {
            f"{ends} {name}": _loss(cluster, pods, rounds, end) for name, end in (("kills", _kill), ("restarts", _stop))
        }


def _loss(cluster: Cluster, pods: list[Pod], rounds: int, end: Callable[[Node], None]) -> dict[str, Any]:
    with traffic(pods) as made:
        for _ in range(rounds):
            for node in cluster.nodes:
                end(node)
                node.start_agent()
                start_daemon_again(node)
    for failure in made.broken:
        print(f"network: {failure}", file=sys.stderr)
    return {"packets": made.sent, "lost": made.lost, "broken TCP connections": len(made.broken), "must": 0}


def _kill(node: Node) -> None:
    node.agent.kill()
    node.daemon.kill()


def _stop(node: Node) -> None:
    node.agent.stop()
    node.daemon.stop()
