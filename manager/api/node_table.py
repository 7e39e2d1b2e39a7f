"""Nodes of the API: the latest report of each node's agent, published to the change log when it changes.

Ports in a report are answers to requests, not part of a node: `/v1/ports` has them.
"""

import msgspec

from contrail_config.kubernetes.kinds import NodeReport
from manager.api.change_log import ChangeLog
from manager.api.change_publisher import encoded
from manager.api.types import NodeView, WatchedKind, WatchMessageType


class NodeTable:
    """`reports` are by node."""

    def __init__(self, change_log: ChangeLog) -> None:
        self._log = change_log
        self.reports: dict[str, NodeReport] = {}

    def reported(self, node: str, report: NodeReport) -> None:
        """Takes a report, which may be the one that is known."""
        if report.ports:
            report = msgspec.structs.replace(report, ports=())
        if self.reports.get(node) != report:
            self.reports[node] = report
            self._publish(WatchMessageType.APPLIED, NodeView(node, report))

    def removed(self, node: str) -> None:
        """Forgets the report of a node. Idempotent."""
        last = self.reports.pop(node, None)
        if last is not None:
            self._publish(WatchMessageType.DELETED, NodeView(node, last))

    def _publish(self, kind: WatchMessageType, view: NodeView) -> None:
        if self._log.is_recording:
            message = encoded(kind, WatchedKind.NODES, view)
            key = (WatchedKind.NODES, view.name)
            self._log.publish(key, WatchedKind.NODES, namespace="", name=view.name, message=message)
