"""Watches: which events they send, from where, and how they end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeError, KubeGoneError
from contrail_config.kube.selector import Selector
from contrail_config.kube.watch import WatchEvent, WatchType
from tests.support.config_maps import CONFIG_MAPS, ConfigMap, ConfigMaps

DEADLINE = 15.0


async def next_events(events: AsyncIterator[WatchEvent[ConfigMap]], count: int) -> list[tuple[str, str, Any]]:
    """Returns the next events: type, name of the object and its data."""
    async with asyncio.timeout(DEADLINE):
        seen = [await anext(events) for _ in range(count)]
    return [
        (event.type.value, event.metadata.name, event.object.data)
        for event in seen
        if isinstance(event.object, ConfigMap)
    ]


async def test_changes_after_a_version_are_sent_in_order(client: KubeClient, config_maps: ConfigMaps) -> None:
    first = await config_maps.create("a")
    await config_maps.create("b")
    await config_maps.change("a", key="1")
    selector = Selector(config_maps.namespace)
    since = first.metadata.resource_version
    async with client.watch(CONFIG_MAPS, selector, since=since, seconds=60) as events:
        assert await next_events(events, 2) == [("ADDED", "b", {}), ("MODIFIED", "a", {"key": "1"})]
        await config_maps.delete("a")
        await config_maps.create("a")
        assert await next_events(events, 2) == [("DELETED", "a", {"key": "1"}), ("ADDED", "a", {})]


async def test_a_deletion_has_a_new_version(client: KubeClient, config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a")
    since = created.metadata.resource_version
    async with client.watch(CONFIG_MAPS, Selector(config_maps.namespace), since=since, seconds=60) as events:
        await config_maps.delete("a")
        async with asyncio.timeout(DEADLINE):
            event = await anext(events)
    assert event.type is WatchType.DELETED
    assert event.metadata.uid == created.metadata.uid
    assert int(event.metadata.resource_version) > int(since)


async def test_a_watch_with_selector_sends_objects_that_start_or_stop_matching(
    client: KubeClient, config_maps: ConfigMaps
) -> None:
    created = await config_maps.create("a", key="1")
    selector = Selector(config_maps.namespace, labels="seen=yes")
    since = created.metadata.resource_version
    async with client.watch(CONFIG_MAPS, selector, since=since, seconds=60) as events:
        await config_maps.create("unseen")
        await config_maps.patch("a", {"metadata": {"labels": {"seen": "yes"}}})
        await config_maps.change("a", key="2")
        await config_maps.patch("a", {"metadata": {"labels": {"seen": "no"}}, "data": {"key": "3"}})
        await config_maps.create("b", labels={"seen": "yes"})
        assert await next_events(events, 4) == [
            ("ADDED", "a", {"key": "1"}),
            ("MODIFIED", "a", {"key": "2"}),
            ("DELETED", "a", {"key": "2"}),
            ("ADDED", "b", {}),
        ]


async def test_a_watch_of_one_object_sends_no_other(client: KubeClient, config_maps: ConfigMaps) -> None:
    created = await config_maps.create("other")
    selector = Selector(config_maps.namespace, fields="metadata.name=a")
    async with client.watch(CONFIG_MAPS, selector, since=created.metadata.resource_version, seconds=60) as events:
        await config_maps.change("other", key="1")
        await config_maps.create("a")
        assert await next_events(events, 1) == [("ADDED", "a", {})]


async def test_a_watch_of_all_namespaces_sends_objects_of_each(client: KubeClient, config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a")
    async with client.watch(
        CONFIG_MAPS, Selector(labels=f"of={config_maps.namespace}"), since=created.metadata.resource_version, seconds=60
    ) as events:
        await config_maps.create("b", labels={"of": config_maps.namespace})
        assert await next_events(events, 1) == [("ADDED", "b", {})]


async def test_a_long_object_is_one_event(client: KubeClient, config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a")
    async with client.watch(
        CONFIG_MAPS, Selector(config_maps.namespace), since=created.metadata.resource_version, seconds=60
    ) as events:
        await config_maps.change("a", key="x" * 900_000)  # etcd takes 1.5 MiB, a config map 1 MiB
        assert await next_events(events, 1) == [("MODIFIED", "a", {"key": "x" * 900_000})]


async def test_a_watch_sends_a_bookmark_shortly_before_its_timeout(client: KubeClient, config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a", labels={"seen": "yes"})
    selector = Selector(config_maps.namespace, labels="seen=yes")
    async with client.watch(CONFIG_MAPS, selector, since=created.metadata.resource_version, seconds=5) as events:
        unseen = await config_maps.create("unseen")  # a real server does not say that it came no further
        async with asyncio.timeout(DEADLINE):
            event = await anext(events)
    assert event.type is WatchType.BOOKMARK
    assert int(event.metadata.resource_version) >= int(unseen.metadata.resource_version)


async def test_a_watch_ends_at_its_timeout(client: KubeClient, config_maps: ConfigMaps) -> None:
    created = await config_maps.create("a")
    since = created.metadata.resource_version
    async with client.watch(CONFIG_MAPS, Selector(config_maps.namespace), since=since, seconds=1) as events:
        async with asyncio.timeout(DEADLINE):
            assert [event async for event in events] == []


async def test_a_watch_from_a_future_version_sends_nothing(client: KubeClient, config_maps: ConfigMaps) -> None:
    """So a client does not notice that the server's history was lost (etcd emptied)."""
    created = await config_maps.create("a")
    since = str(int(created.metadata.resource_version) + 100_000)
    async with client.watch(CONFIG_MAPS, Selector(config_maps.namespace), since=since, seconds=2) as events:
        await config_maps.change("a", key="1")
        async with asyncio.timeout(DEADLINE):
            assert [event async for event in events] == []


async def test_a_watch_from_an_expired_version_is_gone(client: KubeClient, namespace: str) -> None:
    async def watch() -> None:
        async with client.watch(CONFIG_MAPS, Selector(namespace), since="1", seconds=60) as events:
            async with asyncio.timeout(DEADLINE):
                await anext(events)

    with pytest.raises(KubeGoneError, match="too old"):
        await watch()


async def test_an_invalid_version_is_rejected(client: KubeClient, namespace: str) -> None:
    with pytest.raises(KubeError) as raised:
        async with client.watch(CONFIG_MAPS, Selector(namespace), since="x", seconds=60):
            pass
    assert raised.value.status == 500
