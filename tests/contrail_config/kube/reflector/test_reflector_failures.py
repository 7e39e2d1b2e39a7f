"""Whatever the server or the network does, the cache converges to the objects that exist."""

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.object_cache import Deleted
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from tests.support.config_maps import CONFIG_MAPS, ConfigMaps
from tests.support.custom_kinds import DEFINITIONS, definition_of, new_gadgets
from tests.support.fake_apiserver import kinds
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.status_errors import StatusError
from tests.support.recorded_reflector import QUICK, eventually, record_reflector


@pytest.mark.parametrize("as_status", [False, True])
async def test_an_expired_resource_version_leads_to_a_new_list(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps, as_status: bool
) -> None:
    server.faults.gone_as_status = as_status
    last = await config_maps.create("a", key="1")
    await config_maps.create("b")
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await eventually(lambda: server.watches)
        await server.stop()
        server.remove(kinds.CONFIG_MAPS, "a")
        server.storage.compact()
        await server.start()
        await followed.until_listed(2)
        assert followed.changes[3:-1] == [Deleted(last)]


async def test_410_within_the_stream_leads_to_a_new_list(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await config_maps.create("a")
        await followed.until(lambda: followed.objects)
        server.forget_history()
        await followed.until_listed(2)
        await config_maps.create("b")
        await followed.until_seen("a", "b")


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_server_errors_do_not_lead_to_a_new_list(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps, verb: str, code: int
) -> None:
    server.faults.reject(code, verb=verb, times=3)
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await config_maps.create("a")
        await followed.until_seen("a")
        assert followed.lists == 1
        assert server.faults.rejected == 3


@pytest.mark.parametrize("code", [401, 403])
async def test_a_rejection_does_not_lead_to_a_new_list(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps, code: int
) -> None:
    reflector = Reflector(client, CONFIG_MAPS, timings=QUICK)
    async with record_reflector(reflector) as followed:
        await followed.until_listed()
        await eventually(lambda: server.watches)
        server.faults.reject(code, verb="watch", times=3)
        server.cut_watches()
        await eventually(lambda: server.faults.rejected == 3)
        await config_maps.create("a")
        await followed.until_seen("a")
        assert followed.lists == 1


async def test_other_errors_within_the_stream_lose_nothing(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await eventually(lambda: server.watches)
        server.fail_watches(StatusError(500, "InternalError", "etcdserver: no leader"))
        await config_maps.create("a")
        await followed.until_seen("a")
        assert followed.lists == 1


async def test_nothing_is_lost_when_the_server_restarts_under_load(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        for times in range(5):
            await eventually(lambda: server.watches)
            for number in range(20):
                await config_maps.create(f"c{times}-{number}")
            await server.stop()
            server.remove(kinds.CONFIG_MAPS, f"c{times}-0")
            await server.start()
        await followed.until(lambda: len(followed.objects) == 5 * 19)
        assert followed.lists == 1


async def test_repeated_events_are_yielded_once(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    server.faults.repeated = True
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await config_maps.create("a")
        await config_maps.change("a", key="1")
        await config_maps.delete("a")
        await config_maps.create("b")
        await followed.until_seen("b")
        assert followed.names()[1:] == [("Added", "a"), ("Modified", "a"), ("Deleted", "a"), ("Added", "b")]


async def test_reordered_events_do_not_bring_back_deleted_objects(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    await config_maps.create("a")
    await config_maps.create("b")
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        server.cut_watches()
        server.faults.swapped = True
        server.faults.reject(500, verb="watch", times=2)
        await config_maps.change("a", key="1")
        await config_maps.delete("a")
        await config_maps.change("b", key="1")
        newest = await config_maps.change("b", key="2")
        await followed.until_seen("b")
        await config_maps.create("c")
        await followed.until_seen("b", "c")
        assert followed.objects["default", "b"] == newest


async def test_bodies_in_small_chunks_are_joined(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    server.faults.piece = 7
    await config_maps.create("a", key="listed")
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        changed = await config_maps.change("a", key="watched")
        await followed.until(lambda: followed.objects["default", "a"] == changed)


async def test_an_annotation_of_two_megabytes_is_yielded(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    await config_maps.create("a")
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        server.put(kinds.CONFIG_MAPS, "a", data={"key": "x" * 2_000_000})
        await followed.until(lambda: len(followed.objects["default", "a"].data.get("key", "")) == 2_000_000)
        assert followed.lists == 1


async def test_an_emptied_etcd_is_noticed(client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps) -> None:
    """A watch from a version that the server has not reached yet sends no events."""
    for name in "abc":
        await config_maps.create(name)
    async with record_reflector(
        Reflector(client, CONFIG_MAPS, timings=ReflectorTimings(first_pause=0.002, silence=0.2))
    ) as followed:
        await followed.until_listed()
        await config_maps.delete("b")
        await followed.until_seen(*"ac")
        await server.stop()
        server.empty_storage()
        await server.start()
        anew = await config_maps.create("a", key="anew")
        await followed.until(lambda: list(followed.objects.values()) == [anew])
        await config_maps.create("b")
        await followed.until_seen(*"ab")


async def test_a_kind_that_is_deleted_and_recreated_is_followed(client: KubeClient, server: FakeApiServer) -> None:
    gadgets = new_gadgets()
    reflector = Reflector(client, gadgets, timings=QUICK)
    async with record_reflector(reflector) as followed:
        await eventually(lambda: "404" in (reflector.problem or ""))
        name = (await client.create(DEFINITIONS, definition_of(gadgets))).metadata.name
        await followed.until_listed()
        await client.create(gadgets, {"metadata": {"name": "a"}})
        await followed.until_seen("a")
        await client.delete(DEFINITIONS, name)
        await followed.until_seen()
        await eventually(lambda: "404" in (reflector.problem or ""))
        await client.create(DEFINITIONS, definition_of(gadgets))
        await followed.until_listed(2)
        assert reflector.problem is None


async def test_a_kind_deleted_between_watches_keeps_its_objects_until_it_is_listed(
    client: KubeClient, server: FakeApiServer
) -> None:
    gadgets = new_gadgets()
    name = (await client.create(DEFINITIONS, definition_of(gadgets))).metadata.name
    reflector = Reflector(client, gadgets, timings=QUICK)
    async with record_reflector(reflector) as followed:
        await followed.until_listed()
        await client.create(gadgets, {"metadata": {"name": "a"}})
        await followed.until_seen("a")
        server.faults.silent = True
        server.cut_watches()
        await client.delete(DEFINITIONS, name)
        await eventually(lambda: "404" in (reflector.problem or ""))
        await followed.until_seen("a")
        server.faults.silent = False
        await client.create(DEFINITIONS, definition_of(gadgets))
        await followed.until_listed(2)
        await followed.until_seen()


@pytest.mark.parametrize(
    "nonsense",
    [
        b"<html>a proxy's page</html>\n",
        b'{"metadata": {}, "items": [{"metadata": {"name": "\xff"}}]}\n',
        b'{"type": "ADDED", "object": {"metadata": {"name": "\xff"}}}\n',
        b'{"type": "UNHEARD-OF", "object": {}}\n',
        b'{"type": "ADDED", "object": {"metadata": ' + b"[" * 10_000 + b"\n",
    ],
    ids=["a page", "a list that is no text", "an event that is no text", "an unknown event", "an endless depth"],
)
async def test_an_undecodable_response_is_requested_again(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps, nonsense: bytes
) -> None:
    await config_maps.create("a")
    server.faults.nonsense = nonsense
    reflector = Reflector(client, CONFIG_MAPS, timings=QUICK)
    async with record_reflector(reflector) as followed:
        await eventually(lambda: "cannot be decoded" in (reflector.problem or ""))
        server.faults.nonsense = None
        await followed.until_seen("a")
        await eventually(lambda: server.watches)
        server.faults.nonsense = nonsense
        server.cut_watches()
        await eventually(lambda: "cannot be decoded" in (reflector.problem or ""))
        server.faults.nonsense = None
        await config_maps.create("b")
        await followed.until_seen("a", "b")
