"""Writes: what is stored, and which error rejects what."""

import asyncio

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import (
    KubeConflictError,
    KubeError,
    KubeExistsError,
    KubeInvalidError,
    KubeNotFoundError,
)
from contrail_config.kube.resource import Resource
from tests.support.config_maps import CONFIG_MAPS, ConfigMap, ConfigMaps

OTHER_UID = "7a1cbd2e-9d5f-4b0a-a0c1-0f1b6f3b6c11"


async def test_a_created_object_gets_uid_and_version(config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a", key="value")
    assert created.metadata.namespace == config_maps.namespace
    assert created.metadata.uid
    assert int(created.metadata.resource_version) > 0
    assert await config_maps.get("a") == created


async def test_a_struct_can_be_created(client: KubeClient, config_maps: ConfigMaps) -> None:
    other = await config_maps.create("a", key="value")
    body = ConfigMap(metadata=type(other.metadata)(name="b"), data={"key": "value"})
    created = await client.create(CONFIG_MAPS, body, namespace=config_maps.namespace)
    assert created.data == {"key": "value"}


async def test_a_name_is_unique(config_maps: ConfigMaps) -> None:
    await config_maps.create("a")
    with pytest.raises(KubeExistsError, match='configmaps "a" already exists') as raised:
        await config_maps.create("a")
    assert (raised.value.status, raised.value.reason) == (409, "AlreadyExists")


async def test_a_missing_object_is_named(config_maps: ConfigMaps) -> None:
    with pytest.raises(KubeNotFoundError, match='configmaps "a" not found') as raised:
        await config_maps.get("a")
    assert raised.value.details is not None
    assert (raised.value.details.name, raised.value.details.kind) == ("a", "configmaps")


async def test_a_namespace_must_exist(client: KubeClient) -> None:
    with pytest.raises(KubeNotFoundError, match='namespaces "nowhere" not found'):
        await ConfigMaps(client, "nowhere").create("a")


async def test_a_kind_that_is_not_served_is_not_found(client: KubeClient) -> None:
    resource = Resource("none.example", "v1", "None", "nones", ConfigMap, namespaced=False)
    with pytest.raises(KubeNotFoundError) as raised:
        await client.list_all(resource)
    assert raised.value.reason == ""


async def test_a_body_of_another_kind_is_rejected(client: KubeClient, namespace: str) -> None:
    wrong = Resource("", "v1", "Secret", "configmaps", ConfigMap)
    with pytest.raises(KubeError) as raised:
        await client.create(wrong, {"metadata": {"name": "a"}}, namespace=namespace)
    assert raised.value.status == 400


async def test_a_body_without_a_name_is_invalid(client: KubeClient, namespace: str) -> None:
    with pytest.raises(KubeInvalidError, match="name") as raised:
        await client.create(CONFIG_MAPS, {"metadata": {}}, namespace=namespace)
    assert raised.value.details is not None
    assert any("metadata.name" in cause.field for cause in raised.value.details.causes)


async def test_replacing_removes_omitted_fields(client: KubeClient, config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a", labels={"x": "y"}, one="1", two="2")
    body = {
        "metadata": {"name": "a", "resourceVersion": created.metadata.resource_version},
        "data": {"three": "3"},
    }
    await client.replace(CONFIG_MAPS, "a", body, namespace=config_maps.namespace)
    kept = await config_maps.get("a")
    assert (kept.data, kept.metadata.labels, kept.metadata.uid) == ({"three": "3"}, {}, created.metadata.uid)


async def test_replacing_an_older_version_is_a_conflict(client: KubeClient, config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a")
    changed = await config_maps.change("a", key="value")
    with pytest.raises(KubeConflictError, match="the object has been modified") as raised:
        await client.replace(CONFIG_MAPS, "a", created, namespace=config_maps.namespace)
    assert (raised.value.status, raised.value.reason) == (409, "Conflict")
    assert await config_maps.get("a") == changed


async def test_replacing_another_uid_is_a_conflict(client: KubeClient, config_maps: ConfigMaps) -> None:
    await config_maps.create("a")
    with pytest.raises(KubeConflictError, match="UID"):
        await client.replace(
            CONFIG_MAPS, "a", {"metadata": {"name": "a", "uid": OTHER_UID}}, namespace=config_maps.namespace
        )


async def test_one_of_many_replacements_of_the_same_version_wins(client: KubeClient, config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a")

    async def replace(number: int) -> ConfigMap:
        body = ConfigMap(created.metadata, {"winner": str(number)})
        return await client.replace(CONFIG_MAPS, "a", body, namespace=config_maps.namespace)

    results = await asyncio.gather(*map(replace, range(5)), return_exceptions=True)
    won = [result for result in results if isinstance(result, ConfigMap)]
    assert [await config_maps.get("a")] == won
    assert sum(isinstance(result, KubeConflictError) for result in results) == 4


async def test_a_patch_merges_and_removes(config_maps: ConfigMaps) -> None:
    await config_maps.create("a", labels={"x": "y"}, one="1", two="2")
    patched = await config_maps.change("a", one=None, three="3")
    assert (patched.data, patched.metadata.labels) == ({"two": "2", "three": "3"}, {"x": "y"})


async def test_a_patch_that_changes_nothing_keeps_the_version(config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a", one="1")
    assert await config_maps.change("a", one="1") == created


async def test_a_patch_for_another_version_is_a_conflict(config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a")
    await config_maps.change("a", one="1")
    stated = {"resourceVersion": created.metadata.resource_version}
    with pytest.raises(KubeConflictError):
        await config_maps.patch("a", {"metadata": stated, "data": {"one": "2"}})


async def test_a_patch_for_another_uid_is_invalid(config_maps: ConfigMaps) -> None:
    await config_maps.create("a")
    with pytest.raises(KubeInvalidError, match="immutable"):
        await config_maps.patch("a", {"metadata": {"uid": OTHER_UID}, "data": {"one": "2"}})


async def test_a_patch_of_a_missing_object_is_not_found(config_maps: ConfigMaps) -> None:
    with pytest.raises(KubeNotFoundError):
        await config_maps.change("a", one="1")


async def test_a_deleted_object_is_gone(config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a")
    await config_maps.delete("a", uid=created.metadata.uid, resource_version=created.metadata.resource_version)
    with pytest.raises(KubeNotFoundError):
        await config_maps.get("a")
    with pytest.raises(KubeNotFoundError):
        await config_maps.delete("a")


@pytest.mark.parametrize("stated", [{"uid": OTHER_UID}, {"resource_version": "1"}])
async def test_delete_preconditions_are_checked(config_maps: ConfigMaps, stated: dict[str, str]) -> None:
    created = await config_maps.create("a")
    with pytest.raises(KubeConflictError, match="in the precondition"):
        await config_maps.delete("a", **stated)
    assert await config_maps.get("a") == created


async def test_a_recreated_object_has_another_uid(config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a")
    await config_maps.delete("a")
    again = await config_maps.create("a")
    assert again.metadata.uid != created.metadata.uid
    with pytest.raises(KubeConflictError):
        await config_maps.delete("a", uid=created.metadata.uid)


async def test_an_object_with_a_finalizer_is_deleted_when_the_finalizer_is_removed(config_maps: ConfigMaps) -> None:
    await config_maps.create("a")
    await config_maps.patch("a", {"metadata": {"finalizers": ["contract.example/held"]}})
    await config_maps.delete("a")
    await config_maps.get("a")
    await config_maps.patch("a", {"metadata": {"finalizers": None}})
    with pytest.raises(KubeNotFoundError):
        await config_maps.get("a")
