"""Invalid objects: those of our kinds that exist and are skipped, since they cannot be decoded or do not validate."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.resource import Resource

MAX_REPORTED: Final = 5
"""Invalid objects that are named by readiness: one is enough to look into it."""


class InvalidObject(NamedTuple):
    """An object that is skipped, and why."""

    kind: str
    namespace: str
    name: str
    uid: str
    problem: str

    @property
    def title(self) -> str:
        """Kind and name, with the namespace if it has one."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def invalid_objects(resource: Resource[Any], found: Iterable[UndecodableObject]) -> list[InvalidObject]:
    """Returns the undecodable objects of a resource as invalid objects."""
    return [
        InvalidObject(resource.kind, one.metadata.namespace, one.metadata.name, one.metadata.uid, one.problem)
        for one in found
    ]
