"""Pods: what their status subresource accepts, and how a pod on a node terminates."""

from typing import Any

import msgspec
import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeNotFoundError
from contrail_config.kube.resource import Metadata, Resource


class PodMetadata(Metadata, frozen=True):
    """Metadata that shows whether the pod is terminating."""

    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    deletion_timestamp: str | None = None


class Pod(msgspec.Struct, frozen=True):
    """A pod with all fields that these tests read."""

    metadata: PodMetadata
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


PODS = Resource("", "v1", "Pod", "pods", Pod)


async def create_pod(client: KubeClient, namespace: str, **spec: Any) -> Pod:
    containers = [{"name": "c", "image": "none.example/none"}]
    spec = {"containers": containers, "automountServiceAccountToken": False, **spec}
    return await client.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, namespace=namespace)


async def test_annotations_can_be_written_with_the_status(client: KubeClient, namespace: str) -> None:
    created = await create_pod(client, namespace)
    changes = {"metadata": {"uid": created.metadata.uid, "annotations": {"a": "b"}}, "status": {"message": "m"}}
    patched = await client.patch(PODS, "p", changes, namespace=namespace, subresource="status")
    assert (patched.metadata.annotations["a"], patched.status["message"]) == ("b", "m")


async def test_a_pod_without_a_node_is_deleted_at_once(client: KubeClient, namespace: str) -> None:
    await create_pod(client, namespace)
    await client.delete(PODS, "p", namespace=namespace)
    with pytest.raises(KubeNotFoundError):
        await client.get(PODS, "p", namespace=namespace)


async def test_a_pod_on_a_node_terminates_first(client: KubeClient, namespace: str) -> None:
    created = await create_pod(client, namespace, nodeName="n1")
    await client.delete(PODS, "p", namespace=namespace, uid=created.metadata.uid)
    assert (await client.get(PODS, "p", namespace=namespace)).metadata.deletion_timestamp
    await client.delete(PODS, "p", namespace=namespace, uid=created.metadata.uid, grace_period=0)
    with pytest.raises(KubeNotFoundError):
        await client.get(PODS, "p", namespace=namespace)
