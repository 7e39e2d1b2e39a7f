"""An undecodable object hides no other, and keeps its last decodable state."""

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.object_cache import Deleted, Listed
from contrail_config.kube.reflector import Reflector
from tests.support.config_maps import CONFIG_MAPS, ConfigMaps
from tests.support.fake_apiserver import kinds
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import QUICK, eventually, record_reflector

WRONG = {"key": ["no", "text"]}


async def test_it_is_yielded_with_its_name_and_the_reason(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    await config_maps.create("good")
    server.put(kinds.CONFIG_MAPS, "bad", data=WRONG)
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        unreadable, _, listed = followed.changes
        assert isinstance(unreadable, UndecodableObject)
        assert (unreadable.metadata.namespace, unreadable.metadata.name) == ("default", "bad")
        assert unreadable.problem == "Expected `str`, got `array` - at `$.data[...]`"
        assert listed == Listed(complete=False)


async def test_the_list_is_complete_once_it_is_decodable(client: KubeClient, server: FakeApiServer) -> None:
    server.put(kinds.CONFIG_MAPS, "bad", data=WRONG)
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        server.put(kinds.CONFIG_MAPS, "bad", data={"key": "text"})
        await followed.until_listed(2)
        assert followed.names()[2:] == [("Added", "bad"), ("Listed", "")]
        assert followed.changes[-1] == Listed(complete=True)


async def test_the_list_is_complete_once_it_is_deleted(client: KubeClient, server: FakeApiServer) -> None:
    server.put(kinds.CONFIG_MAPS, "bad", data=WRONG)
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        server.remove(kinds.CONFIG_MAPS, "bad")
        await followed.until_listed(2)
        assert followed.changes[2:] == [Listed(complete=True)]


async def test_its_last_state_stays_until_it_is_deleted(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    created = await config_maps.create("a", key="good")
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        server.put(kinds.CONFIG_MAPS, "a", data=WRONG)
        await followed.until(lambda: ("UndecodableObject", "a") in followed.names())
        assert followed.objects == followed.reflector.objects == {("default", "a"): created}
        server.remove(kinds.CONFIG_MAPS, "a")
        await followed.until(lambda: not followed.objects)
        assert followed.changes[-2:] == [Deleted(created), Listed(complete=True)]


async def test_its_last_state_is_deleted_by_a_list_without_it(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    created = await config_maps.create("a", key="good")
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        server.put(kinds.CONFIG_MAPS, "a", data=WRONG)
        await followed.until(lambda: ("UndecodableObject", "a") in followed.names())
        server.remove(kinds.CONFIG_MAPS, "a")
        server.forget_history()
        await followed.until_listed(2)
        assert followed.changes[-2:] == [Deleted(created), Listed(complete=True)]


async def test_it_is_yielded_once(client: KubeClient, server: FakeApiServer) -> None:
    server.put(kinds.CONFIG_MAPS, "bad", data=WRONG)
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        for lists in (1, 2):
            await followed.until_listed(lists)
            await eventually(lambda: server.watches)
            server.forget_history()
        await followed.until_listed(3)
        assert followed.names() == [("UndecodableObject", "bad"), *[("Listed", "")] * 3]


async def test_a_recreated_object_does_not_keep_the_old_state(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    created = await config_maps.create("a")
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await eventually(lambda: server.watches)
        server.remove(kinds.CONFIG_MAPS, "a")
        server.put(kinds.CONFIG_MAPS, "a", data=WRONG)
        server.forget_history()
        await followed.until_listed(2)
        assert followed.changes[2] == Deleted(created)
        assert followed.names()[3:] == [("UndecodableObject", "a"), ("Listed", "")]
