"""A leader whose permissions were revoked is not ready and names them; one denied request is not enough."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from contrail_config.kube.authorization_failures import FORGOTTEN_AFTER, PERSISTENT_AFTER
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.errors import KubeForbiddenError
from manager.configuration import KubernetesSourceSettings as Settings
from manager.configuration import ManagerConfiguration
from manager.kubernetes.cluster import ClusterMember, join_cluster
from manager.kubernetes.wire import PODS
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.fast_event_loop import run_fast

MAY_NOT = 'User "manager" cannot patch resource "pods/status" in API group "" in the namespace "blue"'
STARTING = "pods are not tried yet"

Scene = Callable[[FakeApiServer, ClusterMember], Awaitable[None]]


@contextlib.asynccontextmanager
async def led(cluster: ClusterMember) -> AsyncIterator[None]:
    """The process leads inside the context."""
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(cluster.run(work))
    await begun.wait()
    yield
    task.cancel()
    await asyncio.wait([task])


def play(scene: Scene) -> None:
    async def run() -> None:
        async with (
            serve_fake_apiserver() as server,
            join_cluster(ManagerConfiguration(), Settings(), access=ClientConfig(server.url)) as cluster,
            led(cluster),
        ):
            await scene(server, cluster)

    run_fast(run())


async def be_denied(server: FakeApiServer, cluster: ClusterMember, *, times: int) -> None:
    """Denies patches of pods so many times, each retried after a pause."""
    for _ in range(times):
        server.faults.reject(403, verb="patch", message=f'pods "web-0" is forbidden: {MAY_NOT}')
        with pytest.raises(KubeForbiddenError):
            await cluster.client.patch(PODS, "web-0", {}, namespace="blue", subresource="status")
        await asyncio.sleep(PERSISTENT_AFTER)


def test_one_denied_request_leaves_it_ready() -> None:
    async def scene(server: FakeApiServer, cluster: ClusterMember) -> None:
        await be_denied(server, cluster, times=1)
        assert cluster.readiness([]) == []

    play(scene)


def test_permissions_denied_for_a_while_are_reported() -> None:
    async def scene(server: FakeApiServer, cluster: ClusterMember) -> None:
        await be_denied(server, cluster, times=2)
        assert cluster.readiness([]) == [MAY_NOT]

    play(scene)


def test_it_is_ready_again_once_no_request_is_denied() -> None:
    async def scene(server: FakeApiServer, cluster: ClusterMember) -> None:
        await be_denied(server, cluster, times=2)
        await asyncio.sleep(FORGOTTEN_AFTER)
        assert cluster.readiness([]) == []

    play(scene)


def test_a_starting_leader_reports_why_it_is_not_ready_yet() -> None:
    async def scene(server: FakeApiServer, cluster: ClusterMember) -> None:
        assert cluster.readiness([STARTING])[0] == STARTING

    play(scene)
