"""A consumer that leaves between two changes and returns gets all that it has not seen."""

from contrail_config.kube.client import KubeClient
from contrail_config.kube.object_cache import Added, Deleted, Listed, ObjectChange
from contrail_config.kube.reflector import Reflector
from tests.support.config_maps import CONFIG_MAPS, ConfigMap, ConfigMaps
from tests.support.fake_apiserver import kinds
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import QUICK, record_reflector


async def read_one_by_one(reflector: Reflector[ConfigMap], count: int) -> list[ObjectChange[ConfigMap]]:
    """Reads `count` changes, and leaves the context after each."""
    read = []
    for _ in range(count):
        async with reflector.changes() as changes:
            read.append(await anext(changes))
    return read


async def followed_reflector(client: KubeClient) -> Reflector[ConfigMap]:
    """Returns a reflector whose consumer left after the first list."""
    reflector = Reflector(client, CONFIG_MAPS, timings=QUICK)
    async with record_reflector(reflector) as followed:
        await followed.until_listed()
    return reflector


async def test_leaving_in_the_middle_of_a_list(client: KubeClient, config_maps: ConfigMaps) -> None:
    created = [await config_maps.create(name) for name in "ab"]
    read = await read_one_by_one(Reflector(client, CONFIG_MAPS, timings=QUICK), 3)
    assert read == [Added(created[0]), Added(created[1]), Listed(complete=True)]


async def test_leaving_during_the_deletions_at_the_end_of_a_list(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    created = [await config_maps.create(name) for name in "ab"]
    reflector = await followed_reflector(client)
    for name in "ab":
        server.remove(kinds.CONFIG_MAPS, name)
    server.storage.compact()
    assert await read_one_by_one(reflector, 3) == [Deleted(created[0]), Deleted(created[1]), Listed(complete=True)]


async def test_leaving_between_deletion_and_recreation_in_a_list(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    old = await config_maps.create("a", key="old")
    reflector = await followed_reflector(client)
    server.remove(kinds.CONFIG_MAPS, "a")
    server.put(kinds.CONFIG_MAPS, "a", data={"key": "new"})
    server.storage.compact()
    new = await config_maps.get("a")
    assert await read_one_by_one(reflector, 3) == [Deleted(old), Added(new), Listed(complete=True)]


async def test_leaving_between_the_events_of_a_watch(client: KubeClient, config_maps: ConfigMaps) -> None:
    reflector = await followed_reflector(client)
    created = await config_maps.create("a")
    await config_maps.delete("a")
    again = await config_maps.create("a")
    first, second, third = await read_one_by_one(reflector, 3)
    assert (first, third) == (Added(created), Added(again))
    assert isinstance(second, Deleted)
    assert second.object.metadata.uid == created.metadata.uid
