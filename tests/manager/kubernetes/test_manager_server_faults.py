"""A manager with its store in the cluster converges after any temporary fault of the server."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from contrail_config.kube.configuration.load import load_client_config
from tests.support.address_auditor import AddressAuditor
from tests.support.cluster_objects import ClusterObjects
from tests.support.crashable_manager import CrashableManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import allocated_addresses, stored_virtual_machines

LARGE = "x" * 2_000_000
NETWORKS = "net-a,net-b,net-a"


class Load:
    """Pods that are created and deleted; `converged` returns once the store holds exactly their assignments."""

    def __init__(self, server: FakeApiServer, objects: ClusterObjects) -> None:
        self._server = server
        self._objects = objects
        self._auditor = AddressAuditor(server)
        self.live: dict[str, str] = {}

    def create(self, *names: str) -> None:
        for name in names:
            self.live[name] = self._objects.add_pod(name, networks=NETWORKS)

    def delete(self, *names: str) -> None:
        for name in names:
            self._objects.remove_pod(name)
            del self.live[name]

    async def converged(self) -> None:
        await eventually(self._is_converged)
        assert self._auditor.findings == []

    def _is_converged(self) -> bool:
        vms = stored_virtual_machines(self._server)
        if vms.keys() != set(self.live.values()) or any(len(one.interfaces) != 4 for one in vms.values()):
            return False
        interfaces = {interface.uuid for vm in vms.values() for interface in vm.interfaces}
        return set(allocated_addresses(self._server).values()) == interfaces


@contextlib.asynccontextmanager
async def loaded(life: CrashableManager, server: FakeApiServer, objects: ClusterObjects) -> AsyncIterator[Load]:
    load = Load(server, objects)
    await life.start()
    await eventually(lambda: "status" in (objects.definition() or {}))
    objects.add_nad("net-a")
    objects.add_nad("net-b", cidr="10.2.0.0/16,fd00:2::/64")
    load.create("a", "b", "c")
    await load.converged()
    yield load
    life.check()
    await life.crash()


@pytest.fixture
async def load(server: FakeApiServer, objects: ClusterObjects) -> AsyncIterator[Load]:
    """Three assigned pods; the manager runs until the end of the test."""
    async with loaded(CrashableManager(server), server, objects) as load:
        yield load


async def test_a_server_restart_under_load(server: FakeApiServer, load: Load) -> None:
    for number in range(3):
        load.create(f"before-{number}")
        await server.stop()
        load.create(f"during-{number}")
        await server.start()
    load.delete("a", "before-0", "during-1")
    await load.converged()


async def test_watches_cut_after_any_number_of_bytes(server: FakeApiServer, load: Load) -> None:
    """Within or after an event; the next watch resumes there."""
    server.faults.cuts = list(range(600))
    server.cut_watches()
    load.create("d")
    await eventually(lambda: len(server.faults.cuts) < 300)
    load.delete("b")
    server.faults.cuts.clear()
    await load.converged()


async def test_history_compacted_in_mid_stream(server: FakeApiServer, load: Load) -> None:
    for number in range(5):
        load.create(f"pod-{number}")
        server.forget_history()
        await asyncio.sleep(0)
    load.delete("c", "pod-1")
    server.forget_history()
    await load.converged()


@pytest.mark.parametrize("code", [409, 410, 429, 500, 503, 504])
async def test_failing_requests(server: FakeApiServer, load: Load, code: int) -> None:
    server.faults.reject(code, times=20)
    load.create("d", "e")
    load.delete("a")
    server.end_watches()
    await eventually(lambda: server.faults.rejected >= 10)
    server.faults.rejections.clear()
    await load.converged()


async def test_a_retry_after_header(server: FakeApiServer, load: Load) -> None:
    server.faults.reject(429, verb="update", retry_after=1)  # of a block
    load.create("d")
    begun = asyncio.get_running_loop().time()
    await load.converged()
    assert asyncio.get_running_loop().time() - begun >= 1


async def test_duplicate_and_reordered_watch_events(server: FakeApiServer, load: Load) -> None:
    server.faults.repeated = server.faults.swapped = True
    server.end_watches()
    for number in range(10):
        load.create(f"pod-{number}")
        load.delete(f"pod-{number}")
        load.create(f"pod-{number}")
    load.delete("a", "pod-3")
    await load.converged()


async def test_a_conflict_for_every_write(server: FakeApiServer, load: Load) -> None:
    server.faults.conflicts = True
    load.create("d")
    load.delete("a")
    await eventually(lambda: server.requests.count("update addressblocks") > 8)
    server.faults.conflicts = False
    await load.converged()


@pytest.mark.parametrize("kind", ["pod", "nad", "namespace"])
async def test_an_annotation_of_two_megabytes(load: Load, objects: ClusterObjects, kind: str) -> None:
    notes = {"metadata": {"annotations": {"example.org/notes": LARGE}}}
    change: dict[str, Callable[[], None]] = {
        "pod": lambda: objects.change_pod("a", notes),
        "nad": lambda: objects.change_nad("net-a", notes),
        "namespace": lambda: objects.add_namespace("large", **{"example.org/notes": LARGE}),
    }
    change[kind]()
    load.create("d")
    load.delete("a")
    await load.converged()


async def test_lost_answers(server: FakeApiServer, load: Load) -> None:
    server.faults.lost_responses = 10
    load.create("d", "e")
    load.delete("a")
    await load.converged()


async def test_a_rotated_token(server: FakeApiServer, objects: ClusterObjects, tmp_path: Path) -> None:
    token, kubeconfig = tmp_path / "token", tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(kubeconfig_of(server, token)))
    token.write_text("old")
    server.faults.tokens = {"old"}
    life = CrashableManager(server, access=await load_client_config(kubeconfig=str(kubeconfig)))
    async with loaded(life, server, objects) as load:
        token.write_text("new")
        server.faults.tokens = {"new"}
        server.cut_watches()
        load.create("d")
        load.delete("a")
        await load.converged()


def kubeconfig_of(server: FakeApiServer, token: Path) -> Object:
    return {
        "clusters": [{"name": "fake", "cluster": {"server": server.url}}],
        "users": [{"name": "user", "user": {"tokenFile": str(token)}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "user"}}],
        "current-context": "fake",
    }


async def test_bodies_in_small_chunks(server: FakeApiServer, load: Load) -> None:
    server.faults.piece = 7
    server.end_watches()
    load.create("d")
    load.delete("a")
    await load.converged()
