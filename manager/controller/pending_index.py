"""Who waits for what: pods that lack something are found by it when it appears, without being tried again and again."""

from collections.abc import Iterable

from manager.dependencies import Dependency


class PendingIndex:
    """Pods (by `namespace/name`) and their needs. A pod that waits anew forgets what it waited for before."""

    def __init__(self) -> None:
        self._waiting: dict[Dependency, dict[str, None]] = {}  # in the order in which they began to wait
        self._needs: dict[str, tuple[Dependency, ...]] = {}

    def wait(self, pod: str, needs: Iterable[Dependency]) -> None:
        """Notes what the pod waits for, if it is anything."""
        self.leave(pod)
        if wanted := tuple(needs):
            self._needs[pod] = wanted
        for need in wanted:
            self._waiting.setdefault(need, {})[pod] = None

    def leave(self, pod: str) -> None:
        """Forgets the pod; one that does not wait is no error."""
        for need in self._needs.pop(pod, ()):
            pods = self._waiting[need]
            pods.pop(pod, None)
            if not pods:
                del self._waiting[need]

    def waiting_for(self, need: Dependency) -> list[str]:
        """The pods that wait for it, those first that began first. They stay until they leave or wait anew."""
        return list(self._waiting.get(need, ()))
