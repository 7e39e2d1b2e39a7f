"""Behaviour of a real Kubernetes API server that manager and agents rely on."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.errors import (
    KubeConflictError,
    KubeForbiddenError,
    KubeGoneError,
    KubeInvalidError,
    KubeUnauthorizedError,
)
from contrail_config.kube.reflector import Reflector
from contrail_config.kube.selector import Selector
from contrail_config.kube.watch import WatchEvent, WatchType
from manager.decoding import ConditionStatus, ConditionType, PodCondition
from manager.kubernetes.nad_crd import NadCrd
from manager.kubernetes.wire import NADS, PODS, STATUS_KEY, Presence
from tests.e2e.kubernetes.namespace_objects import NamespaceObjects
from tests.support.real_apiserver.server import ApiServer
from tests.support.recorded_reflector import QUICK, record_reflector

DEADLINE = 30.0
RULES = "rbac.authorization.k8s.io/v1"


async def next_event(events: AsyncIterator[WatchEvent[Any]]) -> WatchEvent[Any]:
    async with asyncio.timeout(DEADLINE):
        return await anext(events)


async def test_nads_can_be_created_once_their_crd_is_established(client: KubeClient, objects: NamespaceObjects) -> None:
    await NadCrd(client).ensure()
    made = await objects.add_nad("blue", cidr="10.1.0.0/16")
    assert made.metadata.annotations is not None
    assert made.metadata.annotations.cidr == "10.1.0.0/16"
    assert await client.list_all(NADS, Selector(objects.namespace)) == [made]


async def test_a_pod_can_be_bound_only_once(objects: NamespaceObjects) -> None:
    assert (await objects.add_pod("p")).spec.node_name is None
    await objects.bind("p", "node-1")
    assert (await objects.pod("p")).spec.node_name == "node-1"
    with pytest.raises(KubeConflictError, match="already assigned"):
        await objects.bind("p", "node-2")


async def test_binding_adds_a_pod_to_the_watch_of_its_node(client: KubeClient, objects: NamespaceObjects) -> None:
    made = await objects.add_pod("p")
    selection = Selector(objects.namespace, fields="spec.nodeName=node-1")
    async with client.watch(PODS, selection, since=made.metadata.resource_version, seconds=60) as events:
        await objects.add_pod("other", node="node-2")
        await objects.bind("p", "node-1")
        event = await next_event(events)
    assert (event.type, event.metadata.name) == (WatchType.ADDED, "p")


async def test_network_status_and_pod_status_are_written_in_one_patch(
    client: KubeClient, objects: NamespaceObjects
) -> None:
    made = await objects.add_pod("p", node="node-1")
    condition = {"type": "PodReadyToStartContainers", "status": "True"}
    patch = {
        "metadata": {"uid": made.metadata.uid, "annotations": {STATUS_KEY: "[]"}},
        "status": {"conditions": [condition]},
    }
    await client.patch(PODS, "p", patch, namespace=objects.namespace, subresource="status")
    pod = await objects.pod("p")
    assert pod.metadata.annotations is not None
    assert pod.metadata.annotations.status is Presence.PRESENT
    assert pod.status.conditions == (PodCondition(ConditionType.SANDBOX, ConditionStatus.TRUE),)


async def test_writes_with_the_uid_of_a_replaced_pod_are_rejected(
    client: KubeClient, objects: NamespaceObjects
) -> None:
    first = await objects.add_pod("p", node="node-1")
    await objects.remove_pod("p")
    second = await objects.add_pod("p", node="node-1")
    patch = {"metadata": {"uid": first.metadata.uid, "annotations": {STATUS_KEY: "[]"}}}
    with pytest.raises((KubeInvalidError, KubeConflictError)):
        await client.patch(PODS, "p", patch, namespace=objects.namespace, subresource="status")
    with pytest.raises(KubeConflictError):
        await client.delete(PODS, "p", namespace=objects.namespace, uid=first.metadata.uid)
    assert await objects.pod("p") == second


async def test_bookmarks_advance_a_watch_past_unselected_changes(client: KubeClient, objects: NamespaceObjects) -> None:
    made = await objects.add_pod("p", node="node-1")
    selection = Selector(objects.namespace, fields="spec.nodeName=node-1")
    async with client.watch(PODS, selection, since=made.metadata.resource_version, seconds=5) as events:
        other = await objects.add_pod("other", node="node-2")
        event = await next_event(events)
    assert event.type is WatchType.BOOKMARK
    assert int(event.metadata.resource_version) >= int(other.metadata.resource_version)


async def test_compacted_revisions_and_pages_fail_with_gone(
    client: KubeClient, objects: NamespaceObjects, api_server: ApiServer
) -> None:
    first = await objects.add_pod("a")
    await objects.add_pod("b")
    pages = client.pages(PODS, Selector(objects.namespace), length=1)
    await anext(pages)
    await objects.remove_pod("b")
    api_server.forget_history()

    async def watch() -> None:
        since = first.metadata.resource_version
        async with client.watch(PODS, Selector(objects.namespace), since=since, seconds=60) as events:
            await next_event(events)

    with pytest.raises(KubeGoneError):
        await watch()
    with pytest.raises(KubeGoneError):
        await anext(pages)


async def test_a_reflector_resumes_after_server_crashes(
    client: KubeClient, objects: NamespaceObjects, api_server: ApiServer
) -> None:
    await objects.add_pod("a")
    async with record_reflector(Reflector(client, PODS, Selector(objects.namespace), timings=QUICK)) as followed:
        await followed.until_listed()
        await restarted(api_server)
        await objects.add_pod("b")
        await followed.until(lambda: len(followed.objects) == 2)
        await objects.remove_pod("a")
        await asyncio.to_thread(api_server.etcd.compact)
        await restarted(api_server)
        await followed.until(lambda: len(followed.objects) == 1)


async def restarted(api_server: ApiServer) -> None:
    """Kills the server and starts it again without stopping its clients."""
    api_server.kill()
    api_server.launch()
    await asyncio.to_thread(api_server.wait_until_ready)


async def test_a_service_account_has_only_the_rights_of_its_role(
    client: KubeClient, objects: NamespaceObjects, api_server: ApiServer
) -> None:
    namespace = objects.namespace
    await objects.add_pod("p")
    api_server.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "reader"}})
    grant_reading_of_pods(api_server, namespace)
    token = api_server.service_account_token(namespace, "reader")
    async with connect(await load_client_config(kubeconfig=str(api_server.kubeconfig(token=token)))) as reader:
        assert await reader.list_all(PODS, Selector(namespace)) == await client.list_all(PODS, Selector(namespace))
        with pytest.raises(KubeForbiddenError, match=f"system:serviceaccount:{namespace}:reader"):
            await reader.delete(PODS, "p", namespace=namespace)
        with pytest.raises(KubeForbiddenError):
            await reader.list_all(PODS)


def grant_reading_of_pods(api_server: ApiServer, namespace: str) -> None:
    """Grants it to the service account `reader` in its namespace."""
    folder = f"/apis/{RULES}/namespaces/{namespace}"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    api_server.ask("POST", f"{folder}/roles", {"metadata": {"name": "readers"}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "readers"}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    binding = {"metadata": {"name": "readers"}, "roleRef": role, "subjects": [subject]}
    api_server.ask("POST", f"{folder}/rolebindings", binding)


async def test_an_unknown_token_is_unauthorized(api_server: ApiServer) -> None:
    async with connect(await load_client_config(kubeconfig=str(api_server.kubeconfig(token="none")))) as client:
        with pytest.raises(KubeUnauthorizedError):
            await client.list_all(PODS)


async def test_no_objects_exist_after_etcd_was_emptied(
    client: KubeClient, objects: NamespaceObjects, api_server: ApiServer
) -> None:
    await objects.add_pod("p")
    await asyncio.to_thread(api_server.etcd.empty)
    await restarted(api_server)
    assert await client.list_all(PODS) == []
