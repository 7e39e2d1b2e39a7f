"""Nodes of a dump: those that are named, otherwise a bounded number, those with problems and waiting pods first."""

import pytest

from contrail_config.kubernetes.pods import CreatedMetadata, Pod
from contrailctl.cluster.pending_pods import PendingPod
from contrailctl.cluster.status import ClusterStatus
from contrailctl.errors import NotFoundError
from contrailctl.sysdump.command import selected_nodes

PODS = {f"node-{number}": Pod(CreatedMetadata(name=f"pod-{number}")) for number in range(1, 6)}
WAITING = PendingPod("shop", "web", "node-3", None, "OnNode", "")
STATUS = ClusterStatus("leader", True, (), (), (WAITING,), 0, ("node node-4: cnid: CrashLoopBackOff",))


def test_nodes_with_problems_and_waiting_pods_come_first() -> None:
    assert list(selected_nodes(STATUS, PODS, None, limit=3)) == ["node-4", "node-3", "node-1"]


def test_named_nodes_are_selected_without_a_bound() -> None:
    assert list(selected_nodes(STATUS, PODS, ["node-5", "node-2"], limit=1)) == ["node-5", "node-2"]


def test_an_unknown_node_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="node-9"):
        selected_nodes(STATUS, PODS, ["node-9"], limit=1)
