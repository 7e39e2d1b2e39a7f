"""Actions of users, scheduler and kubelets in one namespace."""

from typing import Any

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.resource import Metadata, Resource
from manager.kubernetes.wire import NADS, PODS, NadObject, PodObject
from manager.parsing.nad_network import CIDR_KEY
from manager.parsing.networks import NETWORKS_KEY
from tests.support.cluster_objects import NO_SANDBOX
from tests.support.pods import OWN_CONFIG


class _Answer(msgspec.Struct, frozen=True):
    metadata: Metadata


_BINDINGS = Resource("", "v1", "Binding", "bindings", _Answer)


class NamespaceObjects:
    """Creates and deletes objects of an existing namespace."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def add_nad(self, name: str, *, cidr: str) -> NadObject:
        body = {"metadata": {"name": name, "annotations": {CIDR_KEY: cidr}}, "spec": {"config": OWN_CONFIG}}
        return await self.client.create(NADS, body, namespace=self.namespace)

    async def add_pod(self, name: str, *, networks: str = "", node: str = "") -> PodObject:
        """Creates a pod; without a node it is not bound."""
        spec: dict[str, Any] = {"containers": [{"name": "main", "image": "none.example/none"}]}
        body = {
            "metadata": {"name": name, "annotations": {NETWORKS_KEY: networks} if networks else {}},
            "spec": spec | ({"nodeName": node} if node else {}),
        }
        return await self.client.create(PODS, body, namespace=self.namespace)

    async def bind(self, pod: str, node: str) -> None:
        """Binds the pod to the node. Raises KubeConflictError if it is already bound."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        await self.client.create(_BINDINGS, {"metadata": {"name": pod}, "target": target}, namespace=self.namespace)

    async def end_pod(self, name: str) -> None:
        """Ends a pod and deletes it, as kubelet does after the sandbox is gone: its addresses are free soon."""
        await self.client.patch(PODS, name, {"status": NO_SANDBOX}, namespace=self.namespace, subresource="status")
        await self.remove_pod(name)

    async def remove_pod(self, name: str) -> None:
        """Deletes a pod without a grace period, as kubelet does after it has stopped the pod."""
        await self.client.delete(PODS, name, namespace=self.namespace, grace_period=0)

    async def pod(self, name: str) -> PodObject:
        return await self.client.get(PODS, name, namespace=self.namespace)
