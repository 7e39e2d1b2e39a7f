"""A watch that is given up leaves nothing open behind it, though the loop ends at once, as a process does."""

import asyncio
import contextlib
import gc
import warnings

from contrail_config.kube.client import connect
from contrail_config.kube.configuration.load import load_access
from contrail_config.kube.selection import EVERYTHING
from tests.contrail_config.kube.configuration.conftest import WriteKubeconfig
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import FakeApiServer


async def watch_for_a_moment(kubeconfig: str) -> None:
    async with connect(await load_access(kubeconfig=kubeconfig)) as client:
        page = await anext(client.pages(CONFIG_MAPS))
        async with client.watch(CONFIG_MAPS, EVERYTHING, since=page.resource_version, seconds=60) as events:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(anext(events), 0.1)


def in_a_loop_of_its_own(kubeconfig: str) -> list[str]:
    """Returns what Python warns of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        loop = asyncio.new_event_loop()
        loop.run_until_complete(watch_for_a_moment(kubeconfig))
        loop.close()
        gc.collect()
    return [str(each.message) for each in warned]


async def test_nothing_is_left_open(tls_server: FakeApiServer, write_kubeconfig: WriteKubeconfig) -> None:
    assert await asyncio.to_thread(in_a_loop_of_its_own, write_kubeconfig(tls_server.url)) == []
