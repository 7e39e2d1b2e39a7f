"""What manager and agents rely on at a Kubernetes API server, on a real one."""

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
from manager.decoding import Condition, ConditionStatus, ConditionType
from manager.kubernetes.nad_crd import NadCrd
from manager.kubernetes.wire import NADS, PODS, STATUS_KEY, Presence
from tests.e2e.kubernetes.users import Users
from tests.support.real_apiserver.server import ApiServer
from tests.support.recorded_reflector import QUICK, record_reflector

DEADLINE = 30.0
RULES = "rbac.authorization.k8s.io/v1"


async def next_event(events: AsyncIterator[WatchEvent[Any]]) -> WatchEvent[Any]:
    async with asyncio.timeout(DEADLINE):
        return await anext(events)


async def test_networks_can_be_made_as_soon_as_their_definition_is_there(client: KubeClient, users: Users) -> None:
    await NadCrd(client).ensure()
    made = await users.add_nad("blue", cidr="10.1.0.0/16")
    assert made.metadata.annotations is not None
    assert made.metadata.annotations.cidr == "10.1.0.0/16"
    assert await client.list_all(NADS, Selector(users.namespace)) == [made]


async def test_a_pod_is_bound_once(users: Users) -> None:
    assert (await users.add_pod("p")).spec.node_name == ""
    await users.bind("p", "node-1")
    assert (await users.pod("p")).spec.node_name == "node-1"
    with pytest.raises(KubeConflictError, match="already assigned"):
        await users.bind("p", "node-2")


async def test_a_pod_comes_into_its_nodes_sight_when_it_is_bound(client: KubeClient, users: Users) -> None:
    made = await users.add_pod("p")
    selection = Selector(users.namespace, fields="spec.nodeName=node-1")
    async with client.watch(PODS, selection, since=made.metadata.resource_version, seconds=60) as events:
        await users.add_pod("other", node="node-2")
        await users.bind("p", "node-1")
        event = await next_event(events)
    assert (event.type, event.metadata.name) == (WatchType.ADDED, "p")


async def test_network_status_is_written_with_the_pods_status(client: KubeClient, users: Users) -> None:
    made = await users.add_pod("p", node="node-1")
    condition = {"type": "PodReadyToStartContainers", "status": "True"}
    patch = {
        "metadata": {"uid": made.metadata.uid, "annotations": {STATUS_KEY: "[]"}},
        "status": {"conditions": [condition]},
    }
    await client.patch(PODS, "p", patch, namespace=users.namespace, subresource="status")
    pod = await users.pod("p")
    assert pod.metadata.annotations is not None
    assert pod.metadata.annotations.status is Presence.PRESENT
    assert pod.status.conditions == (Condition(ConditionType.SANDBOX, ConditionStatus.TRUE),)


async def test_nothing_is_written_to_a_pod_that_came_in_another_ones_place(client: KubeClient, users: Users) -> None:
    first = await users.add_pod("p", node="node-1")
    await users.remove_pod("p")
    second = await users.add_pod("p", node="node-1")
    patch = {"metadata": {"uid": first.metadata.uid, "annotations": {STATUS_KEY: "[]"}}}
    with pytest.raises((KubeInvalidError, KubeConflictError)):
        await client.patch(PODS, "p", patch, namespace=users.namespace, subresource="status")
    with pytest.raises(KubeConflictError):
        await client.delete(PODS, "p", namespace=users.namespace, uid=first.metadata.uid)
    assert await users.pod("p") == second


async def test_a_watch_learns_how_far_it_came_from_others_changes(client: KubeClient, users: Users) -> None:
    made = await users.add_pod("p", node="node-1")
    selection = Selector(users.namespace, fields="spec.nodeName=node-1")
    async with client.watch(PODS, selection, since=made.metadata.resource_version, seconds=5) as events:
        other = await users.add_pod("other", node="node-2")
        event = await next_event(events)
    assert event.type is WatchType.BOOKMARK
    assert int(event.metadata.resource_version) >= int(other.metadata.resource_version)


async def test_what_was_forgotten_is_gone(client: KubeClient, users: Users, api_server: ApiServer) -> None:
    first = await users.add_pod("a")
    await users.add_pod("b")
    pages = client.pages(PODS, Selector(users.namespace), length=1)
    await anext(pages)
    await users.remove_pod("b")
    api_server.forget_history()

    async def watch() -> None:
        since = first.metadata.resource_version
        async with client.watch(PODS, Selector(users.namespace), since=since, seconds=60) as events:
            await next_event(events)

    with pytest.raises(KubeGoneError):
        await watch()
    with pytest.raises(KubeGoneError):
        await anext(pages)


async def test_a_reflector_follows_through_crashes_of_the_server(
    client: KubeClient, users: Users, api_server: ApiServer
) -> None:
    await users.add_pod("a")
    async with record_reflector(Reflector(client, PODS, Selector(users.namespace), timings=QUICK)) as followed:
        await followed.until_listed()
        await restarted(api_server)
        await users.add_pod("b")
        await followed.until(lambda: len(followed.objects) == 2)
        await users.remove_pod("a")
        await asyncio.to_thread(api_server.etcd.compact)
        await restarted(api_server)
        await followed.until(lambda: len(followed.objects) == 1)


async def restarted(api_server: ApiServer) -> None:
    """Kills the server and starts it again, while whoever uses it goes on."""
    api_server.kill()
    api_server.launch()
    await asyncio.to_thread(api_server.wait_until_ready)


async def test_a_service_account_may_do_what_its_role_says_and_no_more(
    client: KubeClient, users: Users, api_server: ApiServer
) -> None:
    namespace = users.namespace
    await users.add_pod("p")
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
    """To the service account `reader` of the namespace, in there."""
    folder = f"/apis/{RULES}/namespaces/{namespace}"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    api_server.ask("POST", f"{folder}/roles", {"metadata": {"name": "readers"}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "readers"}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    binding = {"metadata": {"name": "readers"}, "roleRef": role, "subjects": [subject]}
    api_server.ask("POST", f"{folder}/rolebindings", binding)


async def test_nobody_is_let_in_without_a_token_that_is_known(api_server: ApiServer) -> None:
    async with connect(await load_client_config(kubeconfig=str(api_server.kubeconfig(token="none")))) as nobody:
        with pytest.raises(KubeUnauthorizedError):
            await nobody.list_all(PODS)


async def test_all_is_gone_when_the_storage_was_emptied(
    client: KubeClient, users: Users, api_server: ApiServer
) -> None:
    await users.add_pod("p")
    await asyncio.to_thread(api_server.etcd.empty)
    await restarted(api_server)
    assert await client.list_all(PODS) == []
