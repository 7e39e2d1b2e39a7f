"""An object that is nested too deeply for the decoder hides no other: Kubernetes accepts 10,000 levels."""

import msgspec
import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.object_cache import Added, Listed
from contrail_config.kube.reflector import Reflector
from tests.support.config_maps import CONFIG_MAPS, ConfigMap, ConfigMaps
from tests.support.fake_apiserver import kinds
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import QUICK, RecordedReflector, eventually, record_reflector

DEPTHS = pytest.mark.parametrize("depth", [990, 2000, 9900])


def nested(depth: int) -> msgspec.Raw:
    """Encoded objects in each other; the fake API server passes them on as they are."""
    return msgspec.Raw(b'{"f:\\"}]":' * depth + b'"]}"' + b"}" * depth)


def added(followed: RecordedReflector) -> list[ConfigMap]:
    return [change.object for change in followed.changes if isinstance(change, Added)]


@DEPTHS
async def test_a_list_has_it_and_the_objects_beside_it(
    depth: int, client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    await config_maps.create("a", key="1")
    server.put(kinds.CONFIG_MAPS, "b", data={"key": "2"}, unread=nested(depth))
    await config_maps.create("c", key="3")
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        found = [(one.metadata.name, one.data) for one in added(followed)]
        assert found == [("a", {"key": "1"}), ("b", {"key": "2"}), ("c", {"key": "3"})]
        assert followed.changes[-1] == Listed(complete=True)


@DEPTHS
async def test_a_watch_has_it_and_the_objects_after_it(
    depth: int, client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await eventually(lambda: server.watches)
        server.put(kinds.CONFIG_MAPS, "b", data={"key": "2"}, unread=nested(depth))
        await config_maps.create("c", key="3")
        await followed.until(lambda: ("Added", "c") in followed.names())
        assert [(one.metadata.name, one.data) for one in added(followed)] == [("b", {"key": "2"}), ("c", {"key": "3"})]
        assert followed.lists == 1


@DEPTHS
async def test_it_is_undecodable_if_its_own_fields_are_nested(
    depth: int, client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    await config_maps.create("a")
    server.put(kinds.CONFIG_MAPS, "b", data={"key": nested(depth)})
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        _, undecodable, listed = followed.changes
        assert isinstance(undecodable, UndecodableObject)
        assert undecodable.metadata.name == "b"
        assert undecodable.problem == "Expected `str`, got `object` - at `$.data[...]`"
        assert listed == Listed(complete=False)
