"""Pods that are there before their namespace is known: they wait for it, since it may choose their network.

Pods and namespaces come by different watches, so a pod may outrun its namespace: by a moment as a rule, for longer
while the watch of namespaces is cut. What a pod is given stays, so it is not told of before. But nobody waits for ever,
since most namespaces choose nothing, and one that cannot be read would keep all its pods from starting.

Of a pod that waits only the newest state is kept. Who was told of once never waits again, nor does anybody's end.
"""

import asyncio
import logging
from collections.abc import Callable

from manager.kubernetes.wire import PodObject

log = logging.getLogger(__name__)


class PodsAwaitingNamespace:
    """`tell` is called with each pod when its namespace is known, or after `patience` seconds.

    The seconds count from the first pod of the namespace that waits. `emptied` is called when nobody waits any more.
    Belongs to one event loop.
    """

    def __init__(self, *, tell: Callable[[PodObject], None], emptied: Callable[[], None], patience: float) -> None:
        self._tell = tell
        self._emptied = emptied
        self._patience = patience
        self._waiting: dict[str, dict[str, PodObject]] = {}  # by namespace and name
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def __bool__(self) -> bool:
        """Whether any pod waits."""
        return bool(self._waiting)

    def __contains__(self, pod: PodObject) -> bool:
        return pod.metadata.name in self._waiting.get(pod.metadata.namespace, ())

    def put(self, pod: PodObject) -> None:
        """The pod waits, or is as it is now."""
        namespace = pod.metadata.namespace
        if namespace not in self._waiting:
            loop = asyncio.get_running_loop()
            self._timers[namespace] = loop.call_later(self._patience, self._give_up, namespace)
        self._waiting.setdefault(namespace, {})[pod.metadata.name] = pod

    def remove(self, pod: PodObject) -> None:
        """The pod is gone, whether it waited or not."""
        namespace = pod.metadata.namespace
        if pod in self:
            del self._waiting[namespace][pod.metadata.name]
            if not self._waiting[namespace]:
                self.admit(namespace)

    def admit(self, namespace: str) -> None:
        """The namespace is known: has its pods told of, in the order in which they came."""
        if namespace in self._waiting:
            self._timers.pop(namespace).cancel()
            for pod in self._waiting.pop(namespace).values():
                self._tell(pod)
            if not self._waiting:
                self._emptied()

    def close(self) -> None:
        """Nobody waits any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._waiting.clear()

    def _give_up(self, namespace: str) -> None:
        count = len(self._waiting[namespace])
        log.warning(
            "namespace %s is not known after %g s: %d of its pods go on without", namespace, self._patience, count
        )
        self.admit(namespace)
