"""Removal of temporary pods while requests that create some are still on their way."""

import asyncio
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeUnavailableError
from contrailctl.check.live.run import Run, new_run
from contrailctl.check.live.temporary_pods import TemporaryPods

NAMESPACE = "kept"


class SlowServer:
    """Carries out creations when `go` is set; one of the object `lost` fails at once. `objects` are by name."""

    def __init__(self, lost: str = "") -> None:
        self.go = asyncio.Event()
        self.asked = asyncio.Event()
        self.objects: dict[str, str] = {}
        self._lost = lost

    async def create(self, resource: Any, body: dict[str, Any], *, namespace: str = "") -> None:
        name: str = body["metadata"]["name"]
        if name == self._lost:
            await self.asked.wait()
            raise KubeUnavailableError("connection reset")
        self.asked.set()
        request = asyncio.ensure_future(self.go.wait())  # what was sent is carried out, whoever waits for it
        request.add_done_callback(lambda _: self.objects.setdefault(name, resource.plural))
        await asyncio.shield(request)

    async def delete(self, _resource: Any, name: str, **_: Any) -> None:
        self.objects.pop(name, None)

    async def list_all(self, resource: Any, _selector: Any) -> list[Any]:
        names = [name for name, kind in self.objects.items() if kind == resource.plural]
        return [
            SimpleNamespace(metadata=SimpleNamespace(name=name, namespace=NAMESPACE, deletion_timestamp=""))
            for name in names
        ]


@pytest.fixture
def run() -> Run:
    return new_run(60)


def pods_of(server: SlowServer, run: Run, *, namespace: str = NAMESPACE) -> TemporaryPods:
    return TemporaryPods(cast("KubeClient", server), run, namespace=namespace)


def manifest(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


async def removed(server: SlowServer, pods: TemporaryPods) -> None:
    """Removes the pods while the server carries out what it was asked for; fails if something is left."""
    asyncio.get_running_loop().call_later(0.05, server.go.set)
    left: Awaitable[list[str]] = pods.remove(seconds=10)
    assert await left == []
    await server.go.wait()
    await asyncio.sleep(0)
    assert server.objects == {}


async def test_a_pod_that_is_created_while_another_one_fails_is_removed(run: Run) -> None:
    server = SlowServer(lost="second")
    pods = pods_of(server, run)
    with pytest.raises(KubeUnavailableError):
        await pods.create([manifest("first"), manifest("second")])
    await removed(server, pods)


async def test_pods_are_not_created_any_more_once_one_has_failed(run: Run) -> None:
    server = SlowServer(lost="lost")
    pods = pods_of(server, run)
    names = [*(f"pod-{number}" for number in range(15)), "lost", "late"]  # 16 at a time
    with pytest.raises(KubeUnavailableError):
        await pods.create(map(manifest, names))
    await removed(server, pods)


@pytest.mark.parametrize("namespace", [NAMESPACE, ""], ids=["in a namespace", "with its own namespace"])
async def test_what_is_created_while_the_check_is_interrupted_is_removed(run: Run, namespace: str) -> None:
    server = SlowServer()
    pods = pods_of(server, run, namespace=namespace)
    creating = asyncio.create_task(pods.create([manifest("only")]))
    await server.asked.wait()
    creating.cancel()
    await asyncio.wait([creating])
    await removed(server, pods)
