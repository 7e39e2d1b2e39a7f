"""A cluster of two nodes, a leading manager and no pending pods, as it should be."""

from datetime import UTC, datetime

import pytest

from contrail_config.kube.resource import Metadata
from contrail_config.kubernetes.kinds import ContrailNodeObject, FullMetadata, NodeReport
from contrail_config.kubernetes.pods import Container, ContainerStatus, CreatedMetadata, Pod, PodSpec, PodStatus
from contrailctl.cluster.objects import DaemonSet, DaemonSetSpec, Lease, LeaseSpec, Node, PodTemplate, PodTemplateSpec
from contrailctl.cluster.pending_pods import PendingPods
from contrailctl.cluster.reading import ClusterObjects

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
LINUX = {"kubernetes.io/os": "linux"}


@pytest.fixture
def now() -> datetime:
    """Five minutes after the nodes have reported."""
    return NOW


@pytest.fixture
def objects() -> ClusterObjects:
    names = ("node-a", "node-b")
    return ClusterObjects(
        lease=Lease(Metadata(name="contrail-manager"), LeaseSpec("node-a_1", renew_time=NOW)),
        is_renewed=True,
        managers=(running_pod("contrail-manager-1", "node-a", "manager"),),
        daemon_set=DaemonSet(Metadata(name="contrail-node"), DaemonSetSpec(PodTemplate(PodTemplateSpec(LINUX)))),
        nodes=tuple(Node(CreatedMetadata(name=name, labels=LINUX)) for name in names),
        agents={name: running_pod(f"contrail-{name}", name, "agent", "cnid") for name in names},
        reports={name: report(name) for name in names},
        pending=PendingPods((), 0),
    )


def running_pod(name: str, node: str, *containers: str) -> Pod:
    """A pod whose containers are ready."""
    spec = PodSpec(node, host_network=True, containers=tuple(Container(each, "contrail:1.2") for each in containers))
    statuses = tuple(ContainerStatus(each, ready=True) for each in containers)
    return Pod(CreatedMetadata(name=name, namespace="contrail"), spec, PodStatus(container_statuses=statuses))


def report(node: str) -> ContrailNodeObject:
    """The report of an agent that is ready."""
    status = NodeReport("2026-01-01T00:00:00Z", "agent", {"agent": "1.2"}, datapath="linux")
    return ContrailNodeObject(FullMetadata(name=node), status)
