"""The CRD of NADs is created if missing, waited for, never changed, and recreated when deleted (rule 2)."""

import asyncio

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.custom_resource_definitions import CUSTOM_RESOURCE_DEFINITIONS
from contrail_config.kube.errors import KubeForbiddenError, KubeUnavailableError
from manager.kubernetes.nad_crd import NAME, NadCrd
from tests.manager.kubernetes.conftest import Follow
from tests.support.cluster_objects import NADS, ClusterObjects
from tests.support.fake_apiserver.kinds import CRDS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object
from tests.support.fake_apiserver.writes import create, delete
from tests.support.recorded_reflector import eventually

ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}


async def test_the_crd_is_created_as_the_standard_defines_it(client: KubeClient, objects: ClusterObjects) -> None:
    await NadCrd(client).ensure()
    definition = objects.definition()
    assert definition is not None
    spec = definition["spec"]
    assert (spec["group"], spec["scope"]) == ("k8s.cni.cncf.io", "Namespaced")
    assert spec["names"] == {
        "kind": "NetworkAttachmentDefinition",
        "plural": "network-attachment-definitions",
        "singular": "network-attachment-definition",
        "shortNames": ["nad", "net-attach-def"],
    }
    (version,) = spec["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)
    schema = version["schema"]["openAPIV3Schema"]
    assert schema["properties"]["spec"]["properties"]["config"]["type"] == "string"


async def test_an_existing_crd_is_never_changed(client: KubeClient, server: FakeApiServer) -> None:
    before = _put(server, {**_foreign(), "status": ESTABLISHED})
    await NadCrd(client).ensure()
    assert server.storage.objects(CRDS)["", NAME] == before
    assert "create customresourcedefinitions" not in server.requests


async def test_ensure_waits_until_the_crd_is_established(client: KubeClient, server: FakeApiServer) -> None:
    made = _put(server, _foreign())
    ensured = asyncio.create_task(NadCrd(client).ensure())
    await _asked(server, 3)
    assert not ensured.done()
    _put(server, {**made, "status": ESTABLISHED})
    await asyncio.wait_for(ensured, 10)


async def test_a_timeout_is_reported_with_the_servers_reason(client: KubeClient, server: FakeApiServer) -> None:
    conditions = [{"type": "NamesAccepted", "status": "False", "message": "the short name nad is taken"}]
    _put(server, {**_foreign(), "status": {"conditions": conditions}})
    with pytest.raises(KubeUnavailableError, match=rf"{NAME}: not established after 0.3 s: NamesAccepted False: the"):
        await NadCrd(client, deadline=0.3).ensure()


async def test_a_crd_being_deleted_is_waited_for_and_recreated(
    client: KubeClient, server: FakeApiServer, objects: ClusterObjects
) -> None:
    leaving = {**_foreign(), "status": ESTABLISHED}
    leaving["metadata"] = {**leaving["metadata"], "finalizers": ["customresourcecleanup.apiextensions.k8s.io"]}
    _put(server, leaving)
    delete(server.storage, CRDS, "", NAME, {})
    ensured = asyncio.create_task(NadCrd(client).ensure())
    await _asked(server, 2)
    assert not ensured.done()
    server.storage.remove(CRDS, server.storage.objects(CRDS)["", NAME])
    await asyncio.wait_for(ensured, 10)
    definition = objects.definition()
    assert definition is not None
    assert definition["spec"]["names"]["shortNames"] == ["nad", "net-attach-def"]


async def test_concurrent_creations_both_succeed(client: KubeClient, server: FakeApiServer) -> None:
    await asyncio.gather(NadCrd(client).ensure(), NadCrd(client).ensure())
    assert server.requests.count("create customresourcedefinitions") == 2


async def test_a_denied_creation_is_reported(client: KubeClient, server: FakeApiServer) -> None:
    server.faults.reject(403, verb="create", times=100)
    with pytest.raises(KubeForbiddenError, match=r"POST .*/customresourcedefinitions"):
        await NadCrd(client).ensure()


async def test_a_crd_deleted_while_in_use_is_recreated_and_its_nads_are_gone(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer, client: KubeClient
) -> None:
    recorded = await follow()
    await recorded.until_listed()
    objects.add_nad("net-a")
    await recorded.until(lambda: "+nad net-a" in recorded.lines())
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, NAME)
    await recorded.until(lambda: "-nad net-a" in recorded.lines())
    await recorded.until_listed(2)
    assert objects.definition() is not None
    objects.add_nad("net-b")
    await recorded.until(lambda: "+nad net-b" in recorded.lines())
    assert server.requests.count("create customresourcedefinitions") == 2
    assert objects.requests("list pods") == 1


async def _asked(server: FakeApiServer, times: int) -> None:
    await eventually(lambda: server.requests.count("get customresourcedefinitions") >= times)


def _foreign() -> Object:
    """The CRD of Multus."""
    names = {"kind": NADS.kind, "plural": NADS.plural, "shortNames": ["net-attach-def"]}
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "metadata": {"name": NAME},
        "spec": {"group": NADS.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _put(server: FakeApiServer, definition: Object) -> Object:
    if ("", NAME) not in server.storage.objects(CRDS):
        made = create(server.storage, CRDS, "", definition)
        definition = {**made, **({"status": definition["status"]} if "status" in definition else {})}
    return server.storage.put(CRDS, definition)
