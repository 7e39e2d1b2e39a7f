"""Removal of temporary pods: while requests that create some are on their way, and while a kubelet is dead."""

import asyncio
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeUnavailableError
from contrailctl.check.live.removal import removed_at_end
from contrailctl.check.live.run import Run, new_run
from contrailctl.check.live.temporary_pods import TemporaryPods
from tests.support.served_agent import until

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

    async def delete(self, _resource: Any, name: str, /, **_: Any) -> None:
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


class ServerWithDeadKubelet(SlowServer):
    """Pods that are deleted stay, with a deletion timestamp: no kubelet confirms that their containers have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.go.set()
        self.deleted = dict[str, str]()

    async def delete(self, resource: Any, name: str, /, **_: Any) -> None:
        self.deleted[name] = resource.plural

    async def list_all(self, resource: Any, selector: Any) -> list[Any]:
        found = await super().list_all(resource, selector)
        for each in found:
            each.metadata.deletion_timestamp = "2026-01-01T00:00:00Z" if each.metadata.name in self.deleted else ""
        return found


@pytest.fixture
def dead() -> ServerWithDeadKubelet:
    return ServerWithDeadKubelet()


async def test_the_namespace_of_pods_whose_kubelet_is_dead_is_deleted(run: Run, dead: ServerWithDeadKubelet) -> None:
    pods = pods_of(dead, run, namespace="")
    await pods.create([manifest("only")])
    (left,) = await pods.remove(seconds=0.1)
    assert dead.deleted == {"only": "pods", run.name: "namespaces"}
    assert "1 pod" in left
    assert f"namespace {run.name}: it goes with its last pod" in left
    assert "not gone within 0.1 s" in left


async def test_the_namespace_of_somebody_else_is_kept_if_pods_of_it_stay(run: Run, dead: ServerWithDeadKubelet) -> None:
    pods = pods_of(dead, run)
    await pods.create([manifest("only")])
    (left,) = await pods.remove(seconds=0.1)
    assert dead.deleted == {"only": "pods"}
    assert left.startswith("1 pod with the label ")
    assert "goes with" not in left


async def test_a_namespace_that_cannot_be_deleted_is_left_with_the_reason(
    run: Run, dead: ServerWithDeadKubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = pods_of(dead, run, namespace="")
    await pods.create([manifest("only")])

    async def delete(_resource: Any, _name: str, **_: Any) -> None:
        raise KubeUnavailableError("connection refused")

    monkeypatch.setattr(dead, "delete", delete)
    assert await pods.remove(seconds=1) == [
        f"1 pod with the label opencontrail.org/connectivity-check={run.identifier}: connection refused",
        f"namespace {run.name}: connection refused",
    ]


async def test_what_is_left_is_known_at_the_end(
    run: Run, dead: ServerWithDeadKubelet, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = pods_of(dead, run)
    async with removed_at_end(pods, seconds=0.1) as left:
        await pods.create([manifest("only")])
    assert len(left) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("error", [KubeUnavailableError("gone"), asyncio.CancelledError()], ids=["error", "interrupt"])
async def test_what_is_left_after_an_error_is_printed(
    run: Run, dead: ServerWithDeadKubelet, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    pods = pods_of(dead, run)
    await pods.create([manifest("only")])
    with pytest.raises(type(error)):
        async with removed_at_end(pods, seconds=0.1):
            raise error
    printed = capsys.readouterr().err
    assert "not removed: 1 pod with the label " in printed
    assert "kubectl delete pods,namespaces" in printed


async def test_nothing_is_printed_after_an_error_if_nothing_is_left(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KubeUnavailableError):
        async with removed_at_end(pods_of(SlowServer(), run), seconds=1):
            raise KubeUnavailableError("gone")
    assert capsys.readouterr().err == ""


async def test_what_may_be_left_is_printed_when_the_removal_is_interrupted(
    run: Run, dead: ServerWithDeadKubelet, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = pods_of(dead, run)

    async def check() -> None:
        async with removed_at_end(pods, seconds=60):
            await pods.create([manifest("only")])

    checking = asyncio.create_task(check())
    await until(lambda: "only" in dead.deleted)
    checking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await checking
    assert "not removed: 1 pod with the label " in capsys.readouterr().err
