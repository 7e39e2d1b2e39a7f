"""Report of an embedded node to its own manager: as a node of a cluster reports, without the API server."""

import importlib.metadata

from agent_api.node.reporter import NodeReporter, ReportIntervals
from agent_api.node_agent import NodeAgent
from contrail_config.kubernetes.kinds import NodeReport
from manager.api.node_table import NodeTable

_INTERVALS = ReportIntervals(interval=1.0, heartbeat=60.0)  # a report costs no request here


class _Destination:
    """Writes the reports of `node` to the table of the manager."""

    def __init__(self, nodes: NodeTable, node: str) -> None:
        self._nodes = nodes
        self._node = node

    async def write(self, report: NodeReport) -> str | None:
        """Writes the report. No other agent reports here: one process owns the node's data."""
        self._nodes.reported(self._node, report)
        return None


def node_reporter(agent: NodeAgent, nodes: NodeTable, node: str) -> NodeReporter:
    """Returns what reports the node, once it runs."""
    versions = {"agent": importlib.metadata.version("contrail-multinet")}
    return NodeReporter(agent, _Destination(nodes, node), versions=versions, intervals=_INTERVALS)
