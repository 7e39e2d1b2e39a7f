"""The parts of Kubernetes objects that are read: nodes, events, the managers' lease, the nodes' DaemonSet."""

from datetime import datetime

import msgspec

from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kubernetes.pods import CreatedMetadata

MANAGER_PODS = "app.kubernetes.io/name=contrail-manager"
NODE_PODS = "app.kubernetes.io/name=contrail-node"
AGENT_CONTAINER = "agent"
DAEMON_CONTAINER = "cnid"
INSTALLER_CONTAINER = "installer"
LEASE_NAME = "contrail-manager"


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    pass


class NodeInfo(_Part, frozen=True):
    """What kubelet says of its node."""

    kubelet_version: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""


class NodeState(_Part, frozen=True):
    """Status of a node."""

    node_info: NodeInfo = NodeInfo()


class Node(_Part, frozen=True):
    """A node."""

    metadata: CreatedMetadata
    status: NodeState = NodeState()


class PodTemplateSpec(_Part, frozen=True):
    """Where pods of a template may run."""

    node_selector: dict[str, str] = {}


class PodTemplate(_Part, frozen=True):
    """Template of pods."""

    spec: PodTemplateSpec = PodTemplateSpec()


class DaemonSetSpec(_Part, frozen=True):
    """What was asked for."""

    template: PodTemplate = PodTemplate()


class DaemonSet(_Part, frozen=True):
    """A DaemonSet."""

    metadata: Metadata
    spec: DaemonSetSpec = DaemonSetSpec()

    def selects(self, node: Node) -> bool:
        """Whether its pods may run on the node."""
        return self.spec.template.spec.node_selector.items() <= node.metadata.labels.items()


class LeaseSpec(_Part, frozen=True):
    """Who holds a lease."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    lease_transitions: int = 0
    renew_time: datetime | None = None


class Lease(_Part, frozen=True):
    """A lease."""

    metadata: Metadata
    spec: LeaseSpec = LeaseSpec()


class PodEvent(_Part, frozen=True):
    """An event."""

    metadata: CreatedMetadata
    reason: str = ""
    message: str = ""
    last_timestamp: datetime | None = None
    event_time: datetime | None = None

    @property
    def time(self) -> datetime | None:
        """When it was last seen."""
        return self.last_timestamp or self.event_time or self.metadata.creation_timestamp


NODES = Resource("", "v1", "Node", "nodes", Node, namespaced=False)
EVENTS = Resource("", "v1", "Event", "events", PodEvent)
DAEMON_SETS = Resource("apps", "v1", "DaemonSet", "daemonsets", DaemonSet)
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", Lease)
