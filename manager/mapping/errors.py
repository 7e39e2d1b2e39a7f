"""Why a pod gets no interfaces, now or at all; messages are fit for an event on the pod.

MappingError
 ├─ PodRefusedError  its request is wrong whatever the networks are, waiting would not help
 └─ PodWaitsError    something is not there, or not free, now; `needs` says what
"""

from manager.dependencies import Dependency
from manager.reasons import Reason


class MappingError(Exception):
    """Root of why a pod gets no interfaces."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class PodRefusedError(MappingError):
    """What the pod asks for cannot be."""


class PodWaitsError(MappingError):
    """What the pod asks for is not there, or not free, now."""

    def __init__(self, reason: Reason, message: str, *dependencies: Dependency) -> None:
        super().__init__(reason, message)
        self.dependencies = dependencies
