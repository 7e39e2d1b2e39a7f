"""Pending index: waiting pods by dependency, so that they are requeued when it appears, instead of being polled."""

from collections.abc import Iterable

from manager.dependencies import Dependency


class PendingIndex:
    """Waiting pods, named by `namespace/name`, with their dependencies."""

    def __init__(self) -> None:
        self._waiting: dict[Dependency, dict[str, None]] = {}  # ordered by when they began to wait
        self._dependencies: dict[str, tuple[Dependency, ...]] = {}

    def __len__(self) -> int:
        return len(self._dependencies)

    def wait(self, pod: str, dependencies: Iterable[Dependency]) -> None:
        """Replaces the pod's dependencies; without any the pod does not wait."""
        self.leave(pod)
        if wanted := tuple(dependencies):
            self._dependencies[pod] = wanted
        for dependency in wanted:
            self._waiting.setdefault(dependency, {})[pod] = None

    def leave(self, pod: str) -> None:
        """Removes the pod. Idempotent."""
        for dependency in self._dependencies.pop(pod, ()):
            pods = self._waiting[dependency]
            pods.pop(pod, None)
            if not pods:
                del self._waiting[dependency]

    def waiting_for(self, dependency: Dependency) -> list[str]:
        """Returns the pods that wait for it, longest wait first. They stay until they leave or wait for others."""
        return list(self._waiting.get(dependency, ()))
