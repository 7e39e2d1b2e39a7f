"""Crowd: many pods of one node that are created at once, with three interfaces each."""

import contextlib
import json
from collections.abc import Iterator

from tests.e2e.kubelet.cluster import Cluster
from tests.e2e.kubelet.node import Node
from tests.e2e.kubelet.starting_pods import restarts
from tests.e2e.polling import wait_until

_WORKLOAD = "crowd"
_DEADLINE = 150.0
_ADDRESSES = 4  # of the pod network, of both families of `blue`, and of `green`


class Crowd:
    """The Deployment `crowd`, with `size` pods of a node."""

    def __init__(self, cluster: Cluster, size: int, node: Node) -> None:
        self._cluster = cluster
        self._size = size
        self._node = node

    def create(self) -> None:
        """Creates all pods."""
        self._cluster.apply(_WORKLOAD)
        spec = {"replicas": self._size, "template": {"spec": {"nodeName": self._node.name}}}
        self._cluster("patch", f"deployment/{_WORKLOAD}", "--patch", json.dumps({"spec": spec}))

    def await_ready(self, expected: int) -> None:
        """Waits until so many pods are ready."""
        wait_until(
            lambda: self._ready() >= expected,
            what=f"ready: {expected} pods",
            otherwise=lambda: self._cluster("get", "pods,events"),
            deadline=_DEADLINE,
        )

    def await_all(self) -> None:
        """Waits until all pods are ready; fails if two have the same address."""
        self.await_ready(self._size)
        pods = self._cluster.addressed_pods(_WORKLOAD)
        addresses = {address for pod in pods for each in pod.addresses.values() for address in each}
        assert len(pods) == self._size
        assert len(addresses) == _ADDRESSES * self._size

    def delete(self) -> None:
        """Deletes the pods, and does not wait."""
        self._cluster("delete", "deployment", _WORKLOAD, "--ignore-not-found")

    def await_left(self, expected: int) -> None:
        """Waits until at most so many pods are left."""
        wait_until(
            lambda: len(self._cluster.pods(_WORKLOAD)) <= expected,
            what=f"deleted, but for {expected} pods",
            otherwise=lambda: self._cluster("get", "pods,events"),
            deadline=_DEADLINE,
        )

    def _ready(self) -> int:
        count: int = self._cluster.get("deployment", _WORKLOAD)["status"].get("readyReplicas", 0)
        return count


@contextlib.contextmanager
def crowd_starts(cluster: Cluster, size: int, node: Node, *, ready: int) -> Iterator[None]:
    """Enters the context when `ready` pods of a new crowd are ready, and fails at its end if not all become ready."""
    crowd = Crowd(cluster, size, node)
    crowd.create()
    try:
        crowd.await_ready(ready)
        yield
        crowd.await_all()
        assert restarts(cluster, _WORKLOAD) == {0}
    finally:
        crowd.delete()
        crowd.await_left(0)
