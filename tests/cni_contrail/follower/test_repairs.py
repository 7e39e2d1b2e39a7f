"""The follower's threads with the real agent: drift is repaired and reported long before an audit."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from agent_api.datapath.kind import Datapath
from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.follower.follower import Follower
from cni_contrail.follower.repairs import Repairs
from cni_contrail.link.netns import is_netns
from contrail_config.embedded.store import SqliteStore
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.served_agent import ServedAgent, serve_agent
from tests.support.virtual_machines import left_interface, make_virtual_machine, pod_interface

VNI = 4_300_017
GATEWAY = "10.1.1.1"
DEADLINE = 20.0  # seconds
NEVER = 3600.0


class AwaitedLog:
    """Log whose lines can be awaited."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._lines: list[str] = []

    def info(self, message: str, /) -> None:
        with self._changed:
            self._lines.append(message)
            self._changed.notify_all()

    warning = error = info

    async def line(self, part: str) -> str:
        """Returns the first line that has the part, as soon as there is one, and forgets all."""
        return await asyncio.to_thread(self._await, part)

    def _await(self, part: str) -> str:
        deadline = time.monotonic() + DEADLINE
        with self._changed:
            while not (found := [line for line in self._lines if part in line]):
                assert self._changed.wait(deadline - time.monotonic()), self._lines
            self._lines.clear()
            return found[0]


class FollowingNode:
    """A node in a namespace of its own, whose follower runs and has no audits."""

    def __init__(self, served: ServedAgent, networks: NodeNetworks, namespace: Netns) -> None:
        self.networks = networks
        self.log = AwaitedLog()
        self._served = served
        self._namespace = namespace
        self._follower: Follower | None = None

    def start(self) -> None:
        """Starts a follower."""
        endpoint = Endpoint(str(self._served.socket), "", 0)
        reconciler = NodeReconciler(self.networks.namespaces)
        self._follower = Follower(endpoint, reconciler, self.log, audit_interval=NEVER)
        with self._namespace.inside():  # threads inherit the namespace
            self._follower.start()

    def stop(self) -> None:
        """Stops the follower; its request to the agent may outlive this."""
        if self._follower is not None:
            self._follower.stop(0.2)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for a state of the kernel that no event reports."""
        async with asyncio.timeout(DEADLINE):
            while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - no event to wait for
                await asyncio.sleep(0.01)

    def has_gateway(self) -> bool:
        """Whether the network has its gateway's address."""
        if not is_netns(self.networks.namespaces.path(VNI)):
            return False
        return GATEWAY in self.networks.run(VNI, "ip", "address")

    async def repaired(self) -> float:
        """The agent's counter of repaired objects."""
        async with self._served.unix.get("/metrics") as answer:
            lines = (await answer.text()).splitlines()
        (line,) = [each for each in lines if each.startswith("contrail_agent_datapath_repaired_total")]
        return float(line.rpartition(" ")[2])


@pytest.fixture
def namespace() -> Iterator[Netns]:
    namespace = Netns("node")
    yield namespace
    namespace.delete()


@pytest.fixture
async def node(
    store: SqliteStore, tmp_path: Path, networks: NodeNetworks, namespace: Netns, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[FollowingNode]:
    monkeypatch.setattr("secrets.token_hex", lambda _length: "00000000")  # one that starts again keeps its lease
    uid = "d8b4a3f0-1d1c-4f0a-9d54-0d2f6f4a1c11"
    left = left_interface(uid, 1)
    subnet = msgspec.structs.replace(left.addresses[0], gateway=GATEWAY, subnet_gateway=GATEWAY)
    left = msgspec.structs.replace(left, vni=VNI, addresses=(subnet,))
    await store.put_virtual_machine(make_virtual_machine(uid=uid, interfaces=(pod_interface(uid), left)))
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as served:
        node = FollowingNode(served, networks, namespace)
        node.start()
        try:
            await node.until(node.has_gateway)
            yield node
        finally:
            await asyncio.to_thread(node.stop)


@pytest.mark.parametrize(
    "damage", [("ip", "link", "delete", "br0"), ("ip", "address", "flush", "dev", "br0"), ("nft", "flush", "ruleset")]
)
async def test_drift_is_repaired_and_counted_at_once(node: FollowingNode, damage: tuple[str, ...]) -> None:
    await asyncio.to_thread(node.networks.run, VNI, *damage)
    assert f"network {VNI}" in await node.log.line("repaired")
    assert await asyncio.to_thread(node.has_gateway)
    assert "from_ports" in await asyncio.to_thread(node.networks.run, VNI, "nft", "list", "ruleset")
    async with asyncio.timeout(DEADLINE):
        while await node.repaired() == 0:  # noqa: ASYNC110 - the report follows the repair
            await asyncio.sleep(0.01)


async def test_a_deleted_namespace_is_made_again_at_once(node: FollowingNode) -> None:
    await asyncio.to_thread(node.networks.namespaces.delete, VNI)
    assert "namespace" in await node.log.line("repaired")
    assert await asyncio.to_thread(node.has_gateway)


async def test_drift_is_repaired_after_the_follower_was_stopped_and_started(node: FollowingNode) -> None:
    await asyncio.to_thread(node.stop)
    await asyncio.to_thread(node.networks.run, VNI, "ip", "address", "flush", "dev", "br0")
    node.start()
    await node.until(node.has_gateway)
    await asyncio.to_thread(node.networks.run, VNI, "nft", "flush", "ruleset")
    assert "filter" in await node.log.line("repaired")


async def test_a_follower_that_is_stopped_while_it_begins_to_watch_leaves_no_thread(
    served: ServedAgent, networks: NodeNetworks, namespace: Netns, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, begun = Repairs.start, threading.Event()

    def stop_first(repairs: Repairs) -> None:
        stopping = threading.Thread(target=followed.stop)
        stopping.start()
        stopping.join()
        begin(repairs)
        begun.set()

    monkeypatch.setattr(Repairs, "start", stop_first)
    followed = FollowingNode(served, networks, namespace)
    followed.start()
    assert await asyncio.to_thread(begun.wait, DEADLINE)
    await followed.until(lambda: not {"datapath", "repairs"} & {each.name for each in threading.enumerate()})


async def test_drift_is_repaired_while_there_is_no_agent(
    store: SqliteStore, tmp_path: Path, node: FollowingNode
) -> None:
    await store.close()
    (tmp_path / "agent.sock").unlink()
    await asyncio.to_thread(node.networks.run, VNI, "ip", "address", "flush", "dev", "br0")
    assert "gateway" in await node.log.line("repaired")
