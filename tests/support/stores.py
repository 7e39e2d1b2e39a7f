"""Stores for the suite in `tests/contrail_config/store_suite`; to add one, add an entry to STORES."""

import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from contrail_config.embedded.store import SqliteStore
from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import GROUP
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.store import Store
from contrail_config.vnc.client import VncAccess, VncClient
from contrail_config.vnc.client import connect as connect_vnc
from contrail_config.vnc.store import VncStore
from tests.support.contrail_api.server import ContrailApi
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.real_apiserver.server import BINARIES
from tests.support.real_apiserver.shared import shared_apiserver

StoreFactory = Callable[[Path, FakeClock], Awaitable[Store]]
"""Opens a store with its data below a folder and with a clock."""

OpenStore = Callable[[], Awaitable[Store]]
"""Opens a test's store, with its earlier content if it was closed before."""


async def open_embedded(folder: Path, clock: FakeClock) -> SqliteStore:
    return await SqliteStore.open(folder / "store" / "config.db", clock=clock)


class ServedStore(KubernetesStore):
    """A Kubernetes store that closes its `client` and further `resources` with itself."""

    client: KubeClient
    resources: AsyncExitStack

    async def close(self) -> None:
        await super().close()
        await self.resources.aclose()


async def open_served(access: ClientConfig, clock: FakeClock, resources: AsyncExitStack) -> ServedStore:
    """Opens a store on the API server of `access`; `resources` are closed with it."""
    client = await resources.enter_async_context(connect(access))
    await ensure_crds(client)
    store = ServedStore(client, clock=clock, flush_interval=0.0)
    store.client, store.resources = client, resources
    return store


_fake_servers: dict[Path, FakeApiServer] = {}
"""Servers by folder; they keep their objects while stopped."""


async def open_on_fake_apiserver(folder: Path, clock: FakeClock) -> ServedStore:
    server = _fake_servers.setdefault(folder, FakeApiServer())
    resources = AsyncExitStack()
    await server.start()
    resources.push_async_callback(server.stop)
    return await open_served(ClientConfig(server.url), clock, resources)


_last_folder: list[Path] = []
"""Folder whose store the real server has; for another folder the server is emptied first."""


async def open_on_real_apiserver(folder: Path, clock: FakeClock) -> ServedStore:
    server = shared_apiserver()
    if _last_folder != [folder]:
        server.etcd.empty(GROUP)
        _last_folder[:] = [folder]
    return await open_served(await load_client_config(kubeconfig=str(server.kubeconfig())), clock, AsyncExitStack())


class VncStoreOfTest(VncStore):
    """A store that closes its `client` and further `resources` with itself; `client` writes past it."""

    client: VncClient
    resources: AsyncExitStack

    async def close(self) -> None:
        await super().close()
        await self.resources.aclose()


_contrail_apis: dict[Path, ContrailApi] = {}
"""Servers by folder; they keep their objects while stopped."""


async def open_on_contrail_api(folder: Path, clock: FakeClock) -> VncStoreOfTest:
    server = _contrail_apis.setdefault(folder, ContrailApi())
    resources = AsyncExitStack()
    await server.start()
    resources.push_async_callback(server.stop)
    client = await resources.enter_async_context(connect_vnc(VncAccess((server.url,))))
    store = await VncStoreOfTest.open(client, cluster="k8s", clock=clock)
    store.client, store.resources = client, resources
    return store


STORES: dict[str, StoreFactory] = {
    "embedded": open_embedded,
    "kubernetes": open_on_fake_apiserver,
    "vnc": open_on_contrail_api,
}
if BINARIES in os.environ:
    STORES["real kubernetes"] = open_on_real_apiserver
