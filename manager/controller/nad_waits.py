"""Pods that wait for NADs to be reconciled, before it is known whether they can be served.

A pod waits for one reconciliation of each NAD that it names and that was queued when the pod came, and of its namespace
if that gets a network of its own. Not for more: a NAD
that changes all the time would hold it back forever. What the NADs' reconciliation results in, or that it fails, is no
matter here: the pod is mapped then, and waits for what is missing in the pending index.
"""

from collections.abc import Callable, Collection


class NadWaits:
    """Pods and NADs by `namespace/name`, namespaces by name. `requeue` queues a pod."""

    def __init__(self, requeue: Callable[[str], None]) -> None:
        self._requeue = requeue
        self._nads: dict[str, set[str]] = {}  # by pod
        self._pods: dict[str, dict[str, None]] = {}  # by NAD, ordered by when they began to wait
        self._finished: set[str] = set()  # pods that were requeued and have not been reconciled since

    def __len__(self) -> int:
        return len(self._nads)

    def must_wait(self, pod: str, unreconciled: Callable[[], Collection[str]]) -> bool:
        """Whether the pod waits: if so, it is requeued. `unreconciled` returns the NADs that it has to wait for now."""
        if pod in self._finished:
            self._finished.discard(pod)
            return False
        self.leave(pod)  # it was queued for another reason, so it may name other NADs
        nads = set(unreconciled())
        if nads:
            self._nads[pod] = nads
        for nad in nads:
            self._pods.setdefault(nad, {})[pod] = None
        return bool(nads)

    def reconciled(self, nad: str) -> None:
        """Requeues the pods that waited for this NAD last."""
        for pod in self._pods.pop(nad, ()):
            nads = self._nads[pod]
            nads.discard(nad)
            if not nads:
                del self._nads[pod]
                self._finished.add(pod)
                self._requeue(pod)

    def leave(self, pod: str) -> None:
        """Removes the pod. Idempotent."""
        self._finished.discard(pod)
        for nad in self._nads.pop(pod, ()):
            pods = self._pods[nad]
            del pods[pod]
            if not pods:
                del self._pods[nad]
