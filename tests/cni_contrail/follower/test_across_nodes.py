"""Two nodes, each with the real agent and follower, and the slices that both agents watch: pods reach each other."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_api.datapath.kind import Datapath
from agent_api.datapath.linux_datapath import Spanning
from cni_contrail.agent.http import Endpoint
from cni_contrail.follower.follower import Follower
from cni_contrail.log import Log
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import Endpoint as SliceEndpoint
from contrail_config.objects import (
    ForwardingMode,
    InterfaceAddress,
    NetworkSlice,
    VirtualMachine,
    VirtualMachineInterface,
    interface_mac,
)
from tests.support.echo import reaches
from tests.support.netns import Netns
from tests.support.node_fabric import PORT, ROUTED_GATEWAYS, Cluster, FabricNode, FabricPod, RoutedPod, cluster_of
from tests.support.served_agent import ServedAgent, port_of, serve_agent
from tests.support.slices import SlicesInMemory
from tests.support.virtual_machines import left_interface, make_virtual_machine, pod_interface

RED, PODS = 5_400_001, 1
UIDS = ("d8b4a3f0-1d1c-4f0a-9d54-0d2f6f4a1c11", "d8b4a3f0-1d1c-4f0a-9d54-0d2f6f4a1c12")
INDEX_0 = (("10.9.0.5", "fd09::5"), ("10.9.0.69", "fd09::45"))
POD_NETWORK = pod_interface(UIDS[0]).network_uuid
BLOCKS = (("10.9.0.0/26", "fd09::/122"), ("10.9.0.64/26", "fd09::40/122"))


class AgentNode:
    """A node with its agent and follower."""

    def __init__(self, node: FabricNode, served: ServedAgent, store: SqliteStore) -> None:
        self.node = node
        self.name = f"node-{node.number}"
        self.served = served
        self._store = store
        self._follower = Follower(Endpoint(str(served.socket), "", 0), node.reconciler, Log(), audit_interval=0.05)

    async def follow_until(self, condition: Callable[[], bool]) -> None:
        """Rounds of the follower until the condition holds."""
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.to_thread(self._follow)

    async def put(self, virtual_machine: VirtualMachine) -> None:
        """Stores a virtual machine of this node."""
        await self._store.put_virtual_machine(virtual_machine)

    async def plug(self, virtual_machine: VirtualMachine, index: int, link: str) -> None:
        """Reports the port of an interface, as ADD does."""
        interface = virtual_machine.interfaces[index]
        async with self.served.unix.post(
            "/vm", json=port_of(virtual_machine.uuid, interface.uuid, host_ifname=link)
        ) as answer:
            assert answer.status == 200

    async def vm_cfg(self, virtual_machine: VirtualMachine) -> int:
        """Status of the answer to an ADD that does not wait."""
        async with self.served.unix.get(f"/vm-cfg/{virtual_machine.name}", params={"wait": "0"}) as answer:
            return answer.status

    async def report(self) -> Any:
        """The latest report."""
        async with self.served.unix.get("/datapath/report") as answer:
            return (await answer.json())["report"]

    def has_routes(self) -> bool:
        """Whether index 0 leads to other nodes."""
        return "contrail.0" in self.node.run("ip", "route")

    def has_port(self, link: str) -> bool:
        """Whether a link is a connected port of the network."""
        return link in self.node.networks.run(RED, "nft", "list", "ruleset")

    def _follow(self) -> None:
        with self.node.namespace.inside():
            self._follower.follow_once()


@pytest.fixture
def slices() -> SlicesInMemory:
    return SlicesInMemory()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with cluster_of(2) as found:
        yield found


@pytest.fixture
async def nodes(cluster: Cluster, slices: SlicesInMemory, tmp_path: Path) -> AsyncIterator[list[AgentNode]]:
    async with AsyncExitStack() as stack:
        found = []
        for node in cluster.nodes:
            folder = tmp_path / str(node.number)
            folder.mkdir()
            store = await SqliteStore.open(folder / "store" / "config.db")
            stack.push_async_callback(store.close)
            spanning = Spanning(slices, f"node-{node.number}", PORT, POD_NETWORK)
            served = await stack.enter_async_context(
                serve_agent(store, folder, datapath=Datapath.LINUX, spanning=spanning)
            )
            found.append(AgentNode(node, served, store))
        yield found


def virtual_machine_of(pod: FabricPod, uid: str, first_pod: RoutedPod) -> VirtualMachine:
    """A virtual machine with index 0 in the pod network, and one interface, that of the pod, in another one."""
    first = msgspec.structs.replace(
        pod_interface(uid),
        mac=first_pod.port.mac,
        vni=PODS,
        mtu=1430,
        addresses=tuple(
            InterfaceAddress(address, length, gateway=gateway, subnet_gateway=gateway)
            for address, length, gateway in zip(first_pod.port.addresses, (16, 64), ROUTED_GATEWAYS, strict=True)
        ),
    )
    second = msgspec.structs.replace(
        left_interface(uid, 1),
        vni=RED,
        mtu=1430,
        mac=pod.port.mac,
        addresses=tuple(
            InterfaceAddress(address, length, gateway=gateway, subnet_gateway=gateway)
            for address, length, gateway in zip(pod.port.addresses, (24, 64), ("10.7.0.1", "fd07::1"), strict=True)
        ),
    )
    return make_virtual_machine(uid=uid, interfaces=(first, second))


def slice_of(interface: VirtualMachineInterface, node: AgentNode, **fields: object) -> NetworkSlice:
    made = NetworkSlice(interface.network_uuid, node.name, interface.network, interface.vni, tunnel=node.node.addresses)
    return msgspec.structs.replace(made, **fields)


async def both_reach(one: Netns, other: Netns, ones: Sequence[str], others: Sequence[str]) -> None:
    """Fails unless both namespaces reach the addresses of the other one."""
    for source, addresses in ((one, others), (other, ones)):
        for address in addresses:
            assert await asyncio.to_thread(reaches, source, address), address


async def test_pods_of_two_nodes_reach_each_other_in_both_kinds_of_networks(
    cluster: Cluster, nodes: list[AgentNode], slices: SlicesInMemory
) -> None:
    pods = [await asyncio.to_thread(cluster.add_pod, each.node, RED, 1 + each.node.number) for each in nodes]
    routed = [
        await asyncio.to_thread(cluster.add_routed_pod, each.node, addresses)
        for each, addresses in zip(nodes, INDEX_0, strict=True)
    ]
    virtual_machines = [virtual_machine_of(*each) for each in zip(pods, UIDS, routed, strict=True)]
    for each, pod, blocks, virtual_machine in zip(nodes, pods, BLOCKS, virtual_machines, strict=True):
        first, second = virtual_machine.interfaces
        endpoint = SliceEndpoint(pod.port.mac, pod.port.addresses).text
        slices.put(slice_of(second, each, endpoints=(endpoint,)))
        own = tuple(block.partition("/")[0] for block in blocks)
        slices.put(slice_of(first, each, forwarding_mode=ForwardingMode.L3, blocks=blocks, node_addresses=own))
        await each.put(virtual_machine)
    for each, other, virtual_machine in zip(nodes, reversed(nodes), virtual_machines, strict=True):
        await each.follow_until(each.has_routes)
        routes = each.node.run("ip", "route", "show", "dev", "contrail.0")
        assert f"via {other.node.tunnel}" in routes
        assert await each.vm_cfg(virtual_machine) == 200
    for each, pod, routed_pod, virtual_machine in zip(nodes, pods, routed, virtual_machines, strict=True):
        await each.plug(virtual_machine, 0, routed_pod.port.link)
        await each.plug(virtual_machine, 1, pod.port.link)
        await each.follow_until(partial(each.has_port, pod.port.link))
    await both_reach(pods[0].namespace, pods[1].namespace, pods[0].port.addresses, pods[1].port.addresses)
    await both_reach(routed[0].namespace, routed[1].namespace, *INDEX_0)
    await both_reach(nodes[0].node.namespace, nodes[1].node.namespace, *INDEX_0)
    for each in nodes:
        report = await each.report()
        assert report["problems"] == {}
        assert report["drops"]["0"]["tunnel"] == 0


async def test_a_node_without_pods_reaches_those_of_another_node(
    cluster: Cluster, nodes: list[AgentNode], slices: SlicesInMemory
) -> None:
    empty, other = nodes
    pod = await asyncio.to_thread(cluster.add_pod, other.node, RED, 3)
    routed = await asyncio.to_thread(cluster.add_routed_pod, other.node, INDEX_0[1])
    virtual_machine = virtual_machine_of(pod, UIDS[1], routed)
    for each, blocks in zip(nodes, BLOCKS, strict=True):
        own = tuple(block.partition("/")[0] for block in blocks)
        first = virtual_machine.interfaces[0]
        slices.put(slice_of(first, each, forwarding_mode=ForwardingMode.L3, blocks=blocks, node_addresses=own))
    await other.put(virtual_machine)
    for each in nodes:
        await each.follow_until(each.has_routes)
    await other.plug(virtual_machine, 0, routed.port.link)
    await other.plug(virtual_machine, 1, pod.port.link)
    await other.follow_until(partial(other.has_port, pod.port.link))
    for address in INDEX_0[1]:
        assert await asyncio.to_thread(reaches, empty.node.namespace, address), address
    for each in nodes:
        report = await each.report()
        assert (report["problems"], report["tunnel-mtu"]) == ({}, 1450)


def test_macs_of_interfaces_are_not_those_of_nodes() -> None:
    assert interface_mac(UIDS[0]).startswith("02:")
