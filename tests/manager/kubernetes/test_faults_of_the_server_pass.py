"""Whatever the server does wrong for a while, a manager that keeps all in the cluster ends with all as it should be."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from contrail_config.kube.configuration.load import load_client_config
from tests.support.address_auditor import AddressAuditor
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object
from tests.support.following import eventually
from tests.support.kept_in_cluster import given_addresses, kept_machines
from tests.support.manager_life import ManagerLife

LARGE = "x" * 2_000_000
NETWORKS = "net-a,net-b,net-a"


class Load:
    """Pods that come and go at a manager; `settled` once each has what it should have, and nobody else anything."""

    def __init__(self, server: FakeApiServer, objects: ClusterObjects) -> None:
        self._server = server
        self._objects = objects
        self._auditor = AddressAuditor(server)
        self.live: dict[str, str] = {}

    def come(self, *names: str) -> None:
        for name in names:
            self.live[name] = self._objects.add_pod(name, networks=NETWORKS)

    def go(self, *names: str) -> None:
        for name in names:
            self._objects.remove_pod(name)
            del self.live[name]

    async def settled(self) -> None:
        await eventually(self._is_settled)
        assert self._auditor.findings == []

    def _is_settled(self) -> bool:
        machines = kept_machines(self._server)
        if machines.keys() != set(self.live.values()) or any(len(one.interfaces) != 4 for one in machines.values()):
            return False
        interfaces = {interface.uuid for machine in machines.values() for interface in machine.interfaces}
        return set(given_addresses(self._server).values()) == interfaces


@contextlib.asynccontextmanager
async def loaded(life: ManagerLife, server: FakeApiServer, objects: ClusterObjects) -> AsyncIterator[Load]:
    load = Load(server, objects)
    await life.start()
    await eventually(lambda: "status" in (objects.definition() or {}))
    objects.add_nad("net-a")
    objects.add_nad("net-b", cidr="10.2.0.0/16,fd00:2::/64")
    load.come("a", "b", "c")
    await load.settled()
    yield load
    life.check()
    await life.crash()


@pytest.fixture
async def load(server: FakeApiServer, objects: ClusterObjects) -> AsyncIterator[Load]:
    """Three pods that are served, by a manager that lives till the end."""
    async with loaded(ManagerLife(server), server, objects) as load:
        yield load


async def test_the_server_restarts_under_load(server: FakeApiServer, load: Load) -> None:
    for number in range(3):
        load.come(f"before-{number}")
        await server.stop()
        load.come(f"meanwhile-{number}")
        await server.start()
    load.go("a", "before-0", "meanwhile-1")
    await load.settled()


async def test_watches_are_cut_after_any_number_of_bytes(server: FakeApiServer, load: Load) -> None:
    """Of an event, its end included; the next watch goes on where the one before stopped."""
    server.faults.cuts = list(range(600))
    server.cut_watches()
    load.come("d")
    await eventually(lambda: len(server.faults.cuts) < 300)
    load.go("b")
    server.faults.cuts.clear()
    await load.settled()


async def test_history_is_forgotten_in_mid_stream(server: FakeApiServer, load: Load) -> None:
    for number in range(5):
        load.come(f"pod-{number}")
        server.forget_history()
        await asyncio.sleep(0)
    load.go("c", "pod-1")
    server.forget_history()
    await load.settled()


@pytest.mark.parametrize("code", [409, 410, 429, 500, 503, 504])
async def test_requests_are_refused(server: FakeApiServer, load: Load, code: int) -> None:
    server.faults.refuse(code, times=20)
    load.come("d", "e")
    load.go("a")
    server.end_watches()
    await eventually(lambda: server.faults.refused >= 10)
    server.faults.refusals.clear()
    await load.settled()


async def test_the_server_asks_to_wait(server: FakeApiServer, load: Load) -> None:
    server.faults.refuse(429, verb="update", retry_after=1)  # of a block
    load.come("d")
    begun = asyncio.get_running_loop().time()
    await load.settled()
    assert asyncio.get_running_loop().time() - begun >= 1


async def test_events_come_twice_and_in_the_wrong_order(server: FakeApiServer, load: Load) -> None:
    server.faults.repeated = server.faults.swapped = True
    server.end_watches()
    for number in range(10):
        load.come(f"pod-{number}")
        load.go(f"pod-{number}")
        load.come(f"pod-{number}")
    load.go("a", "pod-3")
    await load.settled()


async def test_every_write_meets_another_one(server: FakeApiServer, load: Load) -> None:
    server.faults.conflicts = True
    load.come("d")
    load.go("a")
    await eventually(lambda: server.requests.count("update addressblocks") > 8)
    server.faults.conflicts = False
    await load.settled()


@pytest.mark.parametrize("kind", ["pod", "nad", "namespace"])
async def test_an_annotation_of_two_megabytes(load: Load, objects: ClusterObjects, kind: str) -> None:
    notes = {"metadata": {"annotations": {"example.org/notes": LARGE}}}
    change: dict[str, Callable[[], None]] = {
        "pod": lambda: objects.change_pod("a", notes),
        "nad": lambda: objects.change_nad("net-a", notes),
        "namespace": lambda: objects.add_namespace("large", **{"example.org/notes": LARGE}),
    }
    change[kind]()
    load.come("d")
    load.go("a")
    await load.settled()


async def test_answers_are_lost(server: FakeApiServer, load: Load) -> None:
    server.faults.lost_answers = 10
    load.come("d", "e")
    load.go("a")
    await load.settled()


async def test_the_token_is_rotated(server: FakeApiServer, objects: ClusterObjects, tmp_path: Path) -> None:
    token, kubeconfig = tmp_path / "token", tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(kubeconfig_of(server, token)))
    token.write_text("old")
    server.faults.tokens = {"old"}
    life = ManagerLife(server, access=await load_client_config(kubeconfig=str(kubeconfig)))
    async with loaded(life, server, objects) as load:
        token.write_text("new")
        server.faults.tokens = {"new"}
        server.cut_watches()
        load.come("d")
        load.go("a")
        await load.settled()


def kubeconfig_of(server: FakeApiServer, token: Path) -> Object:
    return {
        "clusters": [{"name": "fake", "cluster": {"server": server.url}}],
        "users": [{"name": "user", "user": {"tokenFile": str(token)}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "user"}}],
        "current-context": "fake",
    }


async def test_bodies_come_in_small_pieces(server: FakeApiServer, load: Load) -> None:
    server.faults.piece = 7
    server.end_watches()
    load.come("d")
    load.go("a")
    await load.settled()
