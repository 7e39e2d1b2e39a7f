"""Objects of the live check in the API server: the temporary namespace and pods, and what is read of them.

Pods comply with the Pod Security Standard `restricted`: no root, no capability, no token, a read-only root file system.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from contrail_config.kube.resource import Metadata, Resource
from contrailctl.check.live.plan import LivePod
from contrailctl.check.live.run import Run

CONTAINER: Final = "check"

_NETWORKS_KEY = "k8s.v1.cni.cncf.io/networks"
_DEFAULT_GATEWAY_KEY = "opencontrail.org/default-gw"
_USER = 65532  # of the image
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_NO_RIGHTS = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_RESOURCES = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}


class LabelledMetadata(Metadata, frozen=True, kw_only=True):
    """Metadata with what tells the objects of runs from each other."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    deletion_timestamp: str = ""


class _State(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _ContainerState(msgspec.Struct, frozen=True):
    waiting: _State | None = None
    terminated: _State | None = None


class ContainerStatus(msgspec.Struct, frozen=True):
    """Status of a container."""

    state: _ContainerState = _ContainerState()


class Condition(msgspec.Struct, frozen=True):
    """Condition of a pod."""

    type: str
    status: str


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Status of a pod, as kubelet reports it."""

    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class PodObject(msgspec.Struct, frozen=True):
    """A pod."""

    metadata: LabelledMetadata
    status: PodStatus = PodStatus()

    @property
    def is_ready(self) -> bool:
        """Whether its container runs."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)

    @property
    def has_ended(self) -> bool:
        """Whether it will never be ready."""
        return self.status.phase in ("Failed", "Succeeded")


class NamespaceObject(msgspec.Struct, frozen=True):
    """A namespace."""

    metadata: LabelledMetadata


class EventObject(msgspec.Struct, frozen=True):
    """An event."""

    metadata: Metadata
    type: str = ""
    reason: str = ""
    message: str = ""


class _ServicePort(msgspec.Struct, frozen=True):
    port: int


class _ServiceSpec(msgspec.Struct, frozen=True):
    cluster_ips: tuple[str, ...] = msgspec.field(name="clusterIPs", default=())
    ports: tuple[_ServicePort, ...] = ()


class ServiceObject(msgspec.Struct, frozen=True):
    """A Service."""

    metadata: Metadata
    spec: _ServiceSpec = _ServiceSpec()


PODS: Final = Resource("", "v1", "Pod", "pods", PodObject)
NAMESPACES: Final = Resource("", "v1", "Namespace", "namespaces", NamespaceObject, namespaced=False)
EVENTS: Final = Resource("", "v1", "Event", "events", EventObject)
SERVICES: Final = Resource("", "v1", "Service", "services", ServiceObject)


def namespace_manifest(run: Run) -> Mapping[str, Any]:
    """Returns the temporary namespace."""
    labels = {**run.labels, **_RESTRICTED}
    return {"metadata": {"name": run.name, "labels": labels, "annotations": dict(run.annotations)}}


def pod_manifest(run: Run, pod: LivePod, *, image: str, seconds: int, default_gateway: bool) -> dict[str, Any]:
    """Returns a pod that ends by itself after `seconds`.

    `default_gateway`: whether its default routes are to lead through the network that it checks, which has a gateway.
    """
    networks = {_NETWORKS_KEY: pod.nad} if pod.nad else {}
    gateway = {_DEFAULT_GATEWAY_KEY: pod.nad} if default_gateway else {}
    annotations = {**run.annotations, **networks, **gateway}
    return {
        "metadata": {"name": pod.name, "labels": dict(run.labels), "annotations": annotations},
        "spec": {
            "nodeName": pod.node,  # no scheduler: also on nodes that are full or cordoned
            "tolerations": [{"operator": "Exists"}],
            "activeDeadlineSeconds": seconds,
            "terminationGracePeriodSeconds": 1,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "dnsPolicy": "Default",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
                # Echo requests without NET_RAW; a safe sysctl, which every Pod Security Standard permits.
                "sysctls": [{"name": "net.ipv4.ping_group_range", "value": f"{_USER} {_USER}"}],
            },
            "containers": [
                {
                    "name": CONTAINER,
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["contrailctl", "check", "respond", pod.name],
                    "securityContext": _NO_RIGHTS,
                    "resources": _RESOURCES,
                }
            ],
        },
    }
