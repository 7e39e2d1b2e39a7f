"""Pods whose namespace is not known yet: they are held back, since the namespace may select their network.

Pods and namespaces come from different watches, so a pod may arrive before its namespace: usually by a moment, longer
while the watch of namespaces is interrupted. An assignment is final, so the pod is not delivered before. The wait is
bounded, since most namespaces select nothing, and an undecodable one would keep all its pods from starting.

Only the newest state of a waiting pod is kept. A pod that was delivered once, and a deletion, never wait.
"""

import asyncio
import logging
from collections.abc import Callable

from manager.kubernetes.wire import PodObject

log = logging.getLogger(__name__)


class PodsAwaitingNamespace:
    """`deliver` is called with each pod when its namespace is known, or after `timeout` seconds.

    The timeout runs from the first waiting pod of the namespace. `on_empty` is called when no pod waits any more.
    Belongs to one event loop.
    """

    def __init__(self, *, deliver: Callable[[PodObject], None], on_empty: Callable[[], None], timeout: float) -> None:
        self._deliver = deliver
        self._on_empty = on_empty
        self._timeout = timeout
        self._waiting: dict[str, dict[str, PodObject]] = {}  # by namespace and name
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        """Number of namespaces that pods wait for."""
        return len(self._waiting.keys() | self._timers.keys())

    def __contains__(self, pod: PodObject) -> bool:
        return pod.metadata.name in self._waiting.get(pod.metadata.namespace, ())

    def put(self, pod: PodObject) -> None:
        """Adds the pod, or replaces its state."""
        namespace = pod.metadata.namespace
        if namespace not in self._waiting:  # one timer per namespace, so that later pods do not extend the wait
            loop = asyncio.get_running_loop()
            self._timers[namespace] = loop.call_later(self._timeout, self._time_out, namespace)
        self._waiting.setdefault(namespace, {})[pod.metadata.name] = pod

    def remove(self, pod: PodObject) -> None:
        """Removes a deleted pod. Idempotent."""
        namespace = pod.metadata.namespace
        if pod in self:
            del self._waiting[namespace][pod.metadata.name]
            if not self._waiting[namespace]:
                self.release(namespace)

    def release(self, namespace: str) -> None:
        """Delivers the namespace's pods, in the order in which they came: it is known now."""
        if namespace in self._waiting:
            self._timers.pop(namespace).cancel()
            for pod in self._waiting.pop(namespace).values():
                self._deliver(pod)
            if not self._waiting:
                self._on_empty()

    def close(self) -> None:
        """Drops all waiting pods."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._waiting.clear()

    def _time_out(self, namespace: str) -> None:
        count = len(self._waiting[namespace])
        log.warning("namespace %s: unknown after %g s, proceeding with %d pods", namespace, self._timeout, count)
        self.release(namespace)
