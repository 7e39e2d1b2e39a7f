"""kubelet as the runtime sees it: creates and ends sandboxes for the pods of a node."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tests.e2e.multus import leftovers
from tests.e2e.multus.cluster import NAMESPACE, Cluster
from tests.e2e.multus.node import Node
from tests.e2e.multus.runtime import Sandbox

_NONE: Mapping[str, str] = MappingProxyType({})


class Kubelet:
    """Creates sandboxes and ends all of them after the test."""

    def __init__(self, cluster: Cluster, node: Node) -> None:
        self._cluster = cluster
        self._node = node
        self._made: list[Sandbox] = []

    def sandbox(
        self,
        networks: Any = "",
        *,
        namespace: str = NAMESPACE,
        annotations: Mapping[str, str] = _NONE,
        **settings: Any,
    ) -> Sandbox:
        """Creates a pod by `Cluster.add_pod` and its sandbox; `settings` override the node's settings of Multus."""
        made = self._cluster.add_pod(self._node.name, networks, namespace=namespace, annotations=annotations)
        return self._remembered(Sandbox(made, self._node, settings))

    def another(self, sandbox: Sandbox) -> Sandbox:
        """Creates a new sandbox for the same pod, as for each attempt to start it."""
        return self._remembered(Sandbox(sandbox.pod, self._node, sandbox.settings))

    def end_all(self) -> list[str]:
        """Ends all sandboxes and deletes their pods; returns the leftovers on the node."""
        for sandbox in self._made:
            sandbox.end()
        for sandbox in self._made:
            self._cluster.remove_pod(sandbox.pod)
        return [each for sandbox in self._made for each in leftovers.of_sandbox(sandbox)]

    def _remembered(self, sandbox: Sandbox) -> Sandbox:
        self._made.append(sandbox)
        return sandbox
