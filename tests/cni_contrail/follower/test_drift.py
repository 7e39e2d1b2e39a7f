"""Drift: what somebody changes in one network is repaired by the next audit, and the others notice nothing.

And what else must not disturb networks: another one with the same number, and many that come and go.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent_api.datapath.kind import Datapath
from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.node_reconciler import STALE_SECONDS, NodeReconciler
from cni_contrail.follower.follower import Follower
from cni_contrail.log import Log
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import (
    InterfaceAddress,
    VirtualMachine,
    VirtualMachineInterface,
    interface_mac,
    interface_uuid,
    network_uuid,
)
from tests.support.echo import reaches
from tests.support.echo_stream import EchoStream
from tests.support.fake_clock import FakeClock
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.served_agent import ServedAgent, port_of, serve_agent
from tests.support.virtual_machines import make_virtual_machine, pod_interface

LEFT, RIGHT = 4_100_001, 4_100_002
SUBNETS = {LEFT: "10.1.1", RIGHT: "10.2.2"}


class Pod(NamedTuple):
    """A pod with an interface in both networks; `links` are its host ends by VNI."""

    namespace: Netns
    links: dict[int, str]
    number: int

    def address(self, vni: int) -> str:
        """Its address in a network."""
        return f"{SUBNETS[vni]}.{self.number}"


class Node:
    """The real agent and the follower, on namespaces below a directory of the test."""

    def __init__(
        self, served: ServedAgent, store: SqliteStore, networks: NodeNetworks, clock: FakeClock, stack: ExitStack
    ) -> None:
        self.networks = networks
        self.clock = clock
        self._served = served
        self._store = store
        self._stack = stack
        reconciler = NodeReconciler(networks.namespaces, clock=clock)
        self._follower = Follower(Endpoint(str(served.socket), "", 0), reconciler, Log(), audit_interval=0.05)

    async def follow(self) -> None:
        """One round: the next desired state, or an audit."""
        await asyncio.to_thread(self._follower.follow_once)

    async def follow_until(self, condition: Callable[[], bool], *, seconds: float = 30) -> None:
        """Rounds until the condition holds."""
        async with asyncio.timeout(seconds):
            while not condition():
                await self.follow()

    async def report(self) -> Any:
        """The latest report, as the agent serves it."""
        async with self._served.unix.get("/datapath/report") as answer:
            return (await answer.json())["report"]

    async def status(self) -> str:
        """What the agent says about the datapath."""
        async with self._served.unix.get("/datapath/report") as answer:
            return await answer.text()

    async def put(self, virtual_machine: VirtualMachine) -> None:
        """Stores a virtual machine."""
        await self._store.put_virtual_machine(virtual_machine)

    async def delete(self, virtual_machine: VirtualMachine) -> None:
        """Deletes a virtual machine."""
        await self._store.delete_virtual_machine(virtual_machine.uuid)

    async def add_pod(self, number: int) -> Pod:
        """Attaches a pod to both networks, as the plugin does, until it is connected."""
        virtual_machine = make_virtual_machine(f"p{number}", interfaces=interfaces(number))
        await self.put(virtual_machine)
        await self.follow_until(lambda: self.networks.namespaces.existing() >= {LEFT, RIGHT})
        pod = Pod(Netns("pod"), {vni: f"tap{vni % 10}-{number}" for vni in SUBNETS}, number)
        self._stack.callback(pod.namespace.delete)
        sandbox = pod.namespace.path
        for vni, interface in zip(SUBNETS, virtual_machine.interfaces[1:], strict=True):
            name = f"eth{vni % 10}"
            self.networks.run(
                vni, "ip", "link", "add", pod.links[vni], "master", "br0", "up",
                "type", "veth", "peer", "name", name, "address", interface.mac, "netns", sandbox,
            )  # fmt: skip
            pod.namespace.ip("address", "add", f"{pod.address(vni)}/24", "dev", name)
            pod.namespace.ip("link", "set", name, "up")
            port = port_of(virtual_machine.uuid, interface.uuid, host_ifname=pod.links[vni])
            async with self._served.unix.post("/vm", json=port) as answer:
                assert answer.status == 200
        await self.follow_until(lambda: all(pod.address(vni) in self._neighbours(vni) for vni in SUBNETS))
        return pod

    def _neighbours(self, vni: int) -> str:
        return self.networks.run(vni, "ip", "neighbour", "show", "dev", "br0", "nud", "permanent")


def interfaces(number: int) -> tuple[VirtualMachineInterface, ...]:
    """Index 0, and an interface in both networks."""
    uid = str(uuid.uuid4())
    return pod_interface(uid), *(
        network_interface(interface_uuid(uid, position), vni, f"{subnet}.{number}", f"{subnet}.1")
        for position, (vni, subnet) in enumerate(SUBNETS.items(), start=1)
    )


def network_interface(owner: str, vni: int, address: str, gateway: str, name: str = "") -> VirtualMachineInterface:
    """An interface in the network of this VNI."""
    fq_name = ("default-domain", "k8s-default", name or f"net-{vni}")
    return VirtualMachineInterface(
        uuid=owner,
        mac=interface_mac(owner),
        network_uuid=network_uuid(fq_name),
        network=fq_name,
        addresses=(InterfaceAddress(address, 24, gateway=gateway, subnet_gateway=gateway),),
        vni=vni,
    )


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
async def node(store: SqliteStore, tmp_path: Path, clock: FakeClock, stack: ExitStack) -> AsyncIterator[Node]:
    networks = NodeNetworks(tmp_path / "networks")
    stack.callback(networks.close)
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as served:
        yield Node(served, store, networks, clock, stack)


@pytest.fixture
async def pair(node: Node) -> tuple[Pod, Pod]:
    return await node.add_pod(2), await node.add_pod(3)


DAMAGES = {
    "bridge deleted": ("ip", "link", "delete", "br0"),
    "port detached": ("ip", "link", "set", "tap1-2", "nomaster"),
    "neighbour deleted": ("ip", "neighbour", "delete", "10.1.1.2", "dev", "br0"),
    "gateway deleted": ("ip", "address", "delete", "10.1.1.1/24", "dev", "br0"),
    "ruleset flushed": ("nft", "flush", "ruleset"),
    "rules flushed": ("nft", "flush", "chain", "bridge", "contrail", "from_ports"),
    "element deleted": ("nft", "flush", "set", "bridge", "contrail", "ipv4"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_the_next_audit_repairs_and_reports_it_and_interrupts_nothing_else(
    node: Node, pair: tuple[Pod, Pod], damage: tuple[str, ...]
) -> None:
    first, second = pair
    stream = EchoStream(first.namespace, second.address(RIGHT))
    with stream.running():
        node.networks.run(LEFT, *damage)
        await node.follow()
        report = await node.report()
    assert report["repaired"] > 0
    assert report["repaired-networks"] == {str(LEFT): 1}
    assert report["problems"] == {}
    assert reaches(first.namespace, second.address(LEFT))
    assert reaches(first.namespace, f"{SUBNETS[LEFT]}.1")
    assert stream.lost() == 0, stream.gaps()


async def test_one_deleted_rule_is_made_again(node: Node, pair: tuple[Pod, Pod]) -> None:
    listed = node.networks.run(LEFT, "nft", "-a", "list", "chain", "bridge", "contrail", "from_ports")
    handles = [line.rpartition("# handle ")[2] for line in listed.splitlines() if "ip saddr" in line]
    node.networks.run(LEFT, "nft", "delete", "rule", "bridge", "contrail", "from_ports", "handle", handles[0])
    await node.follow()
    assert (await node.report())["repaired"] > 0
    assert reaches(pair[0].namespace, pair[1].address(LEFT))


async def test_a_deleted_port_is_reported_and_the_others_keep_their_traffic(node: Node, pair: tuple[Pod, Pod]) -> None:
    first, second = pair
    stream = EchoStream(first.namespace, f"{SUBNETS[LEFT]}.1")
    with stream.running():
        node.networks.run(LEFT, "ip", "link", "delete", second.links[LEFT])
        await node.follow()
        report = await node.report()
    assert report["missing"] == {str(LEFT): [second.links[LEFT]]}
    assert stream.lost() == 0, stream.gaps()


async def test_a_deleted_namespace_is_made_again_and_its_ports_are_reported(node: Node, pair: tuple[Pod, Pod]) -> None:
    first, second = pair
    stream = EchoStream(first.namespace, second.address(RIGHT))
    with stream.running():
        node.networks.namespaces.delete(LEFT)
        await node.follow()
        report = await node.report()
    assert f"{SUBNETS[LEFT]}.1" in node.networks.run(LEFT, "ip", "address", "show", "dev", "br0")
    assert report["missing"] == {str(LEFT): sorted([first.links[LEFT], second.links[LEFT]])}
    assert report["changes"] > 0  # its pods are gone, too: without a notification nothing tells who did it
    assert stream.lost() == 0, stream.gaps()


async def test_a_network_whose_vni_another_one_claims_keeps_its_traffic(
    node: Node, pair: tuple[Pod, Pod], clock: FakeClock
) -> None:
    first, second = pair
    uid = str(uuid.uuid4())
    claim = network_interface(interface_uuid(uid, 1), LEFT, "10.9.9.2", "10.9.9.1", "other")
    other = make_virtual_machine("other", uid=uid, interfaces=(pod_interface(uid), claim))
    stream = EchoStream(first.namespace, second.address(LEFT))
    with stream.running():
        await node.put(other)
        await node.follow()
        clock.advance(STALE_SECONDS)
        await node.follow()
        assert f"VNI {LEFT}" in await node.status()
        assert "10.9.9.1" not in node.networks.run(LEFT, "ip", "address")
        await node.delete(other)
        await node.follow()
        assert f"VNI {LEFT}" not in await node.status()
    assert stream.lost() == 0, stream.gaps()


@pytest.mark.timeout(300)
async def test_of_500_networks_nothing_is_left_when_they_are_gone(node: Node, clock: FakeClock, tmp_path: Path) -> None:
    uid = str(uuid.uuid4())
    numbers = range(4_200_000, 4_200_500)
    many = [
        network_interface(interface_uuid(uid, position), vni, f"10.{position // 200}.{position % 200}.2", "10.0.0.1")
        for position, vni in enumerate(numbers, start=1)
    ]
    virtual_machine = make_virtual_machine(uid=uid, interfaces=(pod_interface(uid), *many))
    before = mounts_below(tmp_path), await asyncio.to_thread(open_files)
    await node.put(virtual_machine)
    await node.follow_until(lambda: node.networks.namespaces.existing() == set(numbers), seconds=150)
    assert (await node.report())["problems"] == {}
    await node.delete(virtual_machine)
    await node.follow()
    clock.advance(STALE_SECONDS)
    await node.follow_until(lambda: not node.networks.namespaces.existing(), seconds=150)
    await asyncio.to_thread(node.networks.close)
    assert (mounts_below(tmp_path), await asyncio.to_thread(open_files)) == before


def mounts_below(folder: Path) -> list[str]:
    """Mount points below the folder."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [path for path in mounts if path.startswith(str(folder))]


def open_files() -> int:
    """Number of network namespaces that this process has open."""
    return sum("net:[" in str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
