"""Pods as scheduler and kubelet describe them: conditions, and states of containers."""

from datetime import datetime
from typing import Final

import msgspec

from contrail_config.kube.resource import Metadata, Resource


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    pass


class CreatedMetadata(Metadata, frozen=True, kw_only=True):
    """Metadata with the times of creation and of a requested deletion, labels and annotations."""

    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Waiting(_Part, frozen=True):
    """Why a container does not run."""

    reason: str = ""
    message: str = ""


class Running(_Part, frozen=True):
    """A running container."""

    started_at: datetime | None = None


class Terminated(_Part, frozen=True):
    """An ended container."""

    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(_Part, frozen=True):
    """One of them is set."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Part, frozen=True):
    """State of a container."""

    name: str
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()


class Condition(_Part, frozen=True):
    """Condition of a pod."""

    type: str
    status: str = ""
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class PodStatus(_Part, frozen=True):
    """What kubelet and scheduler say."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ip: str = msgspec.field(name="podIP", default="")
    start_time: datetime | None = None


class Container(_Part, frozen=True):
    """A container of a pod."""

    name: str
    image: str = ""


class PodSpec(_Part, frozen=True):
    """What was asked for."""

    node_name: str = ""
    host_network: bool = False
    containers: tuple[Container, ...] = ()


class Pod(_Part, frozen=True):
    """A pod."""

    metadata: CreatedMetadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def condition(self, kind: str) -> Condition | None:
        """Returns a condition that is true, otherwise None."""
        found = (each for each in self.status.conditions if each.type == kind and each.status == "True")
        return next(found, None)

    def container(self, name: str) -> ContainerStatus | None:
        """Returns the state of a container, None if it has none yet."""
        return next((each for each in self.status.container_statuses if each.name == name), None)

    def image(self, name: str) -> str:
        """Returns the image of a container, empty if there is no such container."""
        return next((each.image for each in self.spec.containers if each.name == name), "")


PODS: Final = Resource("", "v1", "Pod", "pods", Pod)
