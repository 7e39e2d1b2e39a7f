"""Report of an embedded node to its own manager: as a node of a cluster reports, without the API server."""

import importlib.metadata
import socket
from collections.abc import Sequence
from datetime import UTC, datetime

from agent_api.node_agent import NodeAgent
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.objects import Refusal
from manager.api.node_table import NodeTable


def report_node(agent: NodeAgent, nodes: NodeTable, node: str) -> None:
    """Reports the node now, and after each report of its datapath."""
    versions = {"agent": importlib.metadata.version("contrail-multinet")}
    instance = socket.gethostname()

    def report(refused: Sequence[Refusal]) -> None:
        nodes.reported(
            node,
            NodeReport(
                reported_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                instance=instance,
                versions=versions,
                refused=tuple(refused),
                datapath=agent.details["datapath"],
                tunnel_mtu=agent.tunnel_mtu(),
            ),
        )

    agent.on_refused(report)
    report(agent.refusals())
