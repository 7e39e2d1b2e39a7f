"""Other tasks run while a page is decoded, however long the check of each object takes."""

import asyncio
import dataclasses

import pytest

from contrail_config.kube.client import KubeClient
from tests.support.config_maps import CONFIG_MAPS, ConfigMap, ConfigMaps

OBJECTS = 10


async def test_other_tasks_run_between_objects_that_take_long(
    client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, steps, seen = 0.0, 0, set[int]()

    def take_long(_item: ConfigMap) -> None:
        nonlocal now
        now += 1.0
        seen.add(steps)

    async def other_task() -> None:
        nonlocal steps
        while True:
            await asyncio.sleep(0)
            steps += 1

    for number in range(OBJECTS):
        await ConfigMaps(client).create(f"c{number}")
    monkeypatch.setattr("contrail_config.kube.paging.perf_counter", lambda: now)
    other = asyncio.create_task(other_task())
    try:
        await client.list_each(dataclasses.replace(CONFIG_MAPS, check=take_long))
    finally:
        other.cancel()
        await asyncio.wait([other])
    assert len(seen) == OBJECTS
