"""A reflector yields what exists and what changes."""

import asyncio

from contrail_config.kube.client import KubeClient
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kube.selector import Selector
from tests.support.config_maps import CONFIG_MAPS, ConfigMaps
from tests.support.recorded_reflector import record_reflector


async def test_existing_objects_and_changes_are_yielded(client: KubeClient, config_maps: ConfigMaps) -> None:
    for name in "abcde":
        await config_maps.create(name, labels={"mine": ""})
    selector = Selector(config_maps.namespace, labels="mine")
    async with record_reflector(
        Reflector(client, CONFIG_MAPS, selector, timings=ReflectorTimings(page_length=2))
    ) as followed:
        await followed.until_listed()
        await config_maps.change("a", key="1")
        await config_maps.delete("b")
        await config_maps.create("b", labels={"mine": ""})
        await config_maps.patch("c", {"metadata": {"labels": None}})
        await config_maps.create("f", labels={"mine": ""})
        await followed.until_seen(*"abdef")
        assert followed.names()[6:] == [
            ("Modified", "a"),
            ("Deleted", "b"),
            ("Added", "b"),
            ("Deleted", "c"),
            ("Added", "f"),
        ]


async def test_short_watches_lose_nothing(client: KubeClient, config_maps: ConfigMaps) -> None:
    timings = ReflectorTimings(watch_length=(1.0, 1.0), short_watch=0.0)
    selector = Selector(config_maps.namespace, labels="mine")
    names = [f"c{number}" for number in range(40)]
    async with record_reflector(Reflector(client, CONFIG_MAPS, selector, timings=timings)) as followed:
        await followed.until_listed()
        for name in names:
            await config_maps.create(name, labels={"mine": ""})
            await asyncio.sleep(0.05)
        await followed.until_seen(*names)
        assert followed.lists == 1
