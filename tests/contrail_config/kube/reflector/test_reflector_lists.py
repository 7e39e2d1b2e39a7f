"""The first list of a reflector, and each later one."""

import gc
import tracemalloc

from contrail_config.kube.client import KubeClient
from contrail_config.kube.object_cache import Listed
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kube.resource import Resource
from contrail_config.kube.selector import Selector
from tests.support.config_maps import CONFIG_MAPS, ConfigMap, ConfigMaps
from tests.support.fake_apiserver import kinds
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import QUICK, eventually, record_reflector


async def test_all_objects_are_yielded_and_then_listed(client: KubeClient, config_maps: ConfigMaps) -> None:
    created = [await config_maps.create(name) for name in "ab"]
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        assert followed.names() == [("Added", "a"), ("Added", "b"), ("Listed", "")]
        assert followed.changes[-1] == Listed(complete=True)
        assert list(followed.reflector.objects.values()) == created


async def test_an_empty_list_is_yielded_as_listed(client: KubeClient) -> None:
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        assert followed.changes == [Listed(complete=True)]


async def test_a_problem_is_shown_until_it_is_listed(client: KubeClient) -> None:
    reflector = Reflector(client, CONFIG_MAPS, timings=QUICK)
    assert reflector.problem == "configmaps: not listed yet"
    async with record_reflector(reflector) as followed:
        await followed.until_listed()
        assert reflector.problem is None


async def test_a_list_is_read_in_pages_of_500(client: KubeClient, server: FakeApiServer) -> None:
    for number in range(1001):
        server.put(kinds.CONFIG_MAPS, f"c{number}")
    async with record_reflector(Reflector(client, CONFIG_MAPS)) as followed:
        await followed.until_listed()
        assert len(followed.objects) == 1001
        assert server.requests.count("list configmaps") == 3


async def test_only_selected_objects_are_yielded(client: KubeClient, config_maps: ConfigMaps) -> None:
    await config_maps.create("unseen")
    await config_maps.create("seen", labels={"seen": "yes"})
    reflector = Reflector(client, CONFIG_MAPS, Selector("default", labels="seen=yes"), timings=QUICK)
    async with record_reflector(reflector) as followed:
        await followed.until_listed()
        await config_maps.patch("unseen", {"metadata": {"labels": {"seen": "yes"}}})
        await config_maps.patch("seen", {"metadata": {"labels": None}})
        await followed.until(lambda: [name for _, name in followed.objects] == ["unseen"])
        assert followed.names()[2:] == [("Added", "unseen"), ("Deleted", "seen")]


async def test_a_single_object_is_followed_by_name(client: KubeClient, config_maps: ConfigMaps) -> None:
    reflector = Reflector(client, CONFIG_MAPS, Selector("default", fields="metadata.name=a"), timings=QUICK)
    async with record_reflector(reflector) as followed:
        await followed.until_listed()
        await config_maps.create("b")
        await config_maps.create("a")
        await followed.until(lambda: followed.objects)
        assert [name for _, name in followed.objects] == ["a"]


async def test_a_list_that_expires_between_pages_starts_over(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    for name in "abcd":
        await config_maps.create(name)
    timings = ReflectorTimings(first_pause=0.002, page_length=2)
    async with Reflector(client, CONFIG_MAPS, timings=timings).changes() as changes:
        delivered = [await anext(changes)]
        await config_maps.delete("a")
        server.storage.compact()
        delivered += [await anext(changes) for _ in range(5)]
    assert [type(change).__name__ for change in delivered] == ["Added"] * 4 + ["Deleted", "Listed"]
    assert server.requests.count("list configmaps") == 3  # the second list has longer pages


async def test_unchanged_objects_are_not_yielded_again(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    for name in "abc":
        await config_maps.create(name)
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await eventually(lambda: server.watches)
        server.put(kinds.CONFIG_MAPS, "b", data={"key": "1"})
        server.remove(kinds.CONFIG_MAPS, "c")
        server.forget_history()
        await followed.until_listed(2)
        assert followed.names()[4:] == [("Modified", "b"), ("Deleted", "c"), ("Listed", "")]


async def test_relist_starts_with_a_list(client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps) -> None:
    await config_maps.create("a")
    reflector = Reflector(client, CONFIG_MAPS, timings=QUICK)
    async with record_reflector(reflector) as followed:
        await followed.until_listed()
    reflector.relist()
    async with reflector.changes() as changes:
        assert await anext(changes) == Listed(complete=True)
    assert server.requests.count("list configmaps") == 2


async def test_only_the_fields_of_the_struct_stay_in_memory(client: KubeClient, server: FakeApiServer) -> None:
    kept_of_each = await bytes_for_each_object(client, server, count=1000, padding=6000)
    assert kept_of_each < 2048


async def bytes_for_each_object(client: KubeClient, server: FakeApiServer, *, count: int, padding: int) -> float:
    for number in range(count):
        server.put(kinds.PODS, f"p{number}", spec={"padding": "x" * padding})
    pods = Resource("", "v1", "Pod", "pods", ConfigMap)
    async with record_reflector(Reflector(client, pods)) as followed:
        tracemalloc.start()
        await followed.until_listed()
        followed.changes.clear()
        gc.collect()
        snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, "*fake_apiserver*")])
        tracemalloc.stop()
    return sum(trace.size for trace in snapshot.statistics("filename")) / count
