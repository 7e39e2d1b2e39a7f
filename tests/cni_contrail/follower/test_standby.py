"""Two followers of one agent: one programs, the other one changes nothing and takes over when the first is gone."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_api.datapath.follower_lease import LEASE_SECONDS
from agent_api.datapath.kind import Datapath
from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.follower.follower import Follower
from cni_contrail.log import Log
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.support.datapath_node import NodeDaemon
from tests.support.fake_clock import FakeClock
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.served_agent import ServedAgent, serve_agent
from tests.support.virtual_machines import left_interface, make_virtual_machine, pod_interface

VNI = 4_300_017
GATEWAY = "10.1.1.1"
FLUSH = ("ip", "address", "flush", "dev", "br0")


@pytest.fixture
async def virtual_machine(store: SqliteStore) -> VirtualMachine:
    uid = "d8b4a3f0-1d1c-4f0a-9d54-0d2f6f4a1c41"
    left = left_interface(uid, 1)
    subnet = msgspec.structs.replace(left.addresses[0], gateway=GATEWAY, subnet_gateway=GATEWAY)
    left = msgspec.structs.replace(left, vni=VNI, addresses=(subnet,))
    stored = make_virtual_machine(uid=uid, interfaces=(pod_interface(uid), left))
    await store.put_virtual_machine(stored)
    return stored


def make_follower(served: ServedAgent, networks: NodeNetworks) -> Follower:
    reconciler = NodeReconciler(networks.namespaces, clock=FakeClock())
    return Follower(Endpoint(str(served.socket), "", 0), reconciler, Log(), audit_interval=0.05)


async def follow_until(follower: Follower, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.to_thread(follower.follow_once)


async def status(served: ServedAgent) -> Any:
    async with served.unix.get("/datapath/report") as answer:
        return await answer.json()


async def test_the_second_one_changes_nothing_while_the_first_one_follows(
    served: ServedAgent, networks: NodeNetworks, virtual_machine: VirtualMachine
) -> None:
    first, second = make_follower(served, networks), make_follower(served, networks)
    await follow_until(first, lambda: networks.namespaces.existing() == {VNI})
    networks.run(VNI, *FLUSH)
    for _ in range(3):
        assert await asyncio.to_thread(second.follow_once) > 0
    assert GATEWAY not in networks.run(VNI, "ip", "address")
    assert (await status(served))["follower"] == first.name
    await follow_until(first, lambda: GATEWAY in networks.run(VNI, "ip", "address"))


async def test_a_follower_that_lost_its_turn_forgets_what_it_knew(
    store: SqliteStore, tmp_path: Path, networks: NodeNetworks, virtual_machine: VirtualMachine
) -> None:
    """Suspended for longer than its lease, and then without an agent, it would bring back an old state."""
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as served:
        first, second = make_follower(served, networks), make_follower(served, networks)
        await follow_until(first, lambda: networks.namespaces.existing() == {VNI})
        assert served.agent.datapath is not None
        lease = served.agent.datapath.lease
        lease._expires = 0.0  # as if LEASE_SECONDS had passed
        await follow_until(second, lambda: lease.holder == second.name)
        await asyncio.to_thread(first.follow_once)
    networks.run(VNI, *FLUSH)
    await asyncio.to_thread(first.follow_once)
    assert GATEWAY not in networks.run(VNI, "ip", "address")
    await asyncio.to_thread(second.follow_once)
    assert GATEWAY in networks.run(VNI, "ip", "address")


class TestDaemons:
    """Two daemons of one node, as while one is replaced by another."""

    @pytest.fixture
    def namespace(self, make_netns: Callable[[str], Netns]) -> Netns:
        return make_netns("node")

    @pytest.fixture
    def daemons(self, served: ServedAgent, tmp_path: Path, networks: NodeNetworks) -> Iterator[list[NodeDaemon]]:
        made = []
        for name in "ab":
            folder = tmp_path / name
            folder.mkdir()
            settings = {
                "agent-socket": str(served.socket),
                "state-dir": str(folder / "state"),
                "netns-dir": str(networks.folder),
            }
            made.append(NodeDaemon(folder, settings))
        yield made
        for daemon in made:
            daemon.close()

    async def test_when_one_is_killed_the_other_one_takes_over(
        self,
        served: ServedAgent,
        networks: NodeNetworks,
        virtual_machine: VirtualMachine,
        daemons: list[NodeDaemon],
        namespace: Netns,
    ) -> None:
        first, second = daemons
        for daemon in daemons:
            with namespace.inside():
                daemon.launch()
            if daemon is first:
                await self.until_reported(served)
        holder = (await status(served))["follower"]
        assert holder.startswith(f"contrail-cnid-{first.pid}-")
        await self.until(lambda: "on standby" in second.log.read_text())
        assert holder in second.log.read_text()
        networks.run(VNI, *FLUSH)
        first.kill()
        await self.until(lambda: GATEWAY in networks.run(VNI, "ip", "address"))
        await self.until_reported(served)
        assert (await status(served))["follower"].startswith(f"contrail-cnid-{second.pid}-")

    async def until_reported(self, served: ServedAgent) -> None:
        async with asyncio.timeout(30):
            while (await status(served))["report"] is None:  # noqa: ASYNC110 - another process is polled
                await asyncio.sleep(0.02)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(LEASE_SECONDS + 15):
            while not await asyncio.to_thread(holds):  # noqa: ASYNC110 - another process is polled
                await asyncio.sleep(0.02)
