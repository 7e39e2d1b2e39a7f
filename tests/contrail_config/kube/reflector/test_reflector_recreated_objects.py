"""A recreated object has another uid: the deletion of the old one is yielded before the new one."""

from contrail_config.kube.client import KubeClient
from contrail_config.kube.object_cache import Added, Deleted, Listed
from contrail_config.kube.reflector import Reflector
from tests.support.config_maps import CONFIG_MAPS, ConfigMaps
from tests.support.fake_apiserver import kinds
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import QUICK, eventually, record_reflector


async def test_a_recreation_seen_by_a_watch(client: KubeClient, config_maps: ConfigMaps) -> None:
    await config_maps.create("a")
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await config_maps.delete("a")
        await config_maps.create("a")
        await followed.until(lambda: len(followed.changes) == 4)
        assert followed.names()[2:] == [("Deleted", "a"), ("Added", "a")]


async def test_a_recreation_seen_by_a_later_list(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    old = await config_maps.create("a", key="old")
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await eventually(lambda: server.watches)
        server.remove(kinds.CONFIG_MAPS, "a")
        server.put(kinds.CONFIG_MAPS, "a", data={"key": "new"})
        server.forget_history()
        await followed.until_listed(2)
        new = await config_maps.get("a")
        assert followed.changes[2:] == [Deleted(old), Added(new), Listed(complete=True)]
