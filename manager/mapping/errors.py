"""Errors that keep a pod from getting interfaces; messages can be used in an event on the pod.

MappingError
 ├─ PodRefusedError  the request is invalid whatever the networks are; waiting would not help
 └─ PodWaitsError    an object is missing or not available now; `dependencies` are the objects to wait for
"""

from manager.dependencies import Dependency
from manager.reasons import Reason


class MappingError(Exception):
    """Root of the errors that keep a pod from getting interfaces."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class PodRefusedError(MappingError):
    """The pod's request is invalid."""


class PodWaitsError(MappingError):
    """An object that the pod requests is missing or not available now."""

    def __init__(self, reason: Reason, message: str, *dependencies: Dependency) -> None:
        super().__init__(reason, message)
        self.dependencies = dependencies
