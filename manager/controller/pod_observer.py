"""Pod observer: the pod controller calls it for every change of pods, at once and in order."""

from typing import Protocol

from contrail_config.objects import VirtualMachine
from manager.controller.pod_record import Assignment, PodRecord


class PodObserver(Protocol):
    """Methods return at once and raise nothing."""

    def pod_changed(self, record: PodRecord, vm: VirtualMachine | None, /) -> None:
        """The pod of the record is new, or has another outcome or virtual machine, `vm`."""

    def pod_gone(self, record: PodRecord, /) -> None:
        """The pod, if the record has one, does not exist any more."""

    def assignment_changed(self, before: Assignment | None, after: Assignment | None, /) -> None:
        """The store holds something else for a record."""
