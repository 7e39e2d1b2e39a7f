"""Networks of nodes whose agents have a Contrail API server as store: nodes know each other by virtual routers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from cni_contrail.agent.connections import idle_connections
from tests.e2e.across_nodes.node import MTU, Node
from tests.support.cluster_objects import ClusterObjects
from tests.support.cluster_processes import ManagerProcess, plain_kubeconfig, running
from tests.support.contrail_api.server import ContrailApi, serve_contrail_api
from tests.support.contrail_callers import Caller, Made, caller_of
from tests.support.echo import reaches
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.netns import Netns

NAMESPACE = "blue"
NETWORK, CIDR = "left", "10.7.0.0/24"
NUMBERS = (1, 2)


class ContrailSite(NamedTuple):
    """What the agents read; they know no Kubernetes API server."""

    url: str
    folder: Path

    def kubeconfig(self) -> Path:
        return self.folder / "no-kubeconfig"


class Attached(NamedTuple):
    """A pod on a node; `addresses` are those of index 0 and of its network."""

    node: Node
    sandbox: Netns
    addresses: list[str]


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with serve_fake_apiserver() as server:
        yield server


@pytest.fixture
async def contrail() -> AsyncIterator[ContrailApi]:
    async with serve_contrail_api() as contrail:
        yield contrail


@pytest.fixture
async def routers(contrail: ContrailApi) -> AsyncIterator[list[Made]]:
    """Virtual routers of both nodes, as the site's provisioning makes them."""
    async with caller_of(contrail.url) as caller:
        yield [await add_router(caller, number) for number in NUMBERS]


async def add_router(caller: Caller, number: int) -> Made:
    return await caller.create(
        "virtual-router",
        fq_name=["default-global-system-config", f"node-{number}"],
        parent_type="global-system-config",
        virtual_router_ip_address=f"192.0.2.{number}",
    )


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def test_pods_reach_each_other_across_nodes_at_index_0_and_in_their_network(
    server: FakeApiServer, contrail: ContrailApi, routers: list[Made], tmp_path: Path, stack: ExitStack
) -> None:
    objects = ClusterObjects(server)
    objects.add_nad(NETWORK, cidr=CIDR)
    for number in NUMBERS:
        objects.add_pod(f"on-{number}", networks=NETWORK, node=f"node-{number}")
    kubeconfig = plain_kubeconfig(tmp_path, server.url)
    store = {"kind": "vnc", "url": contrail.url}
    manager = ManagerProcess(tmp_path / "manager", kubeconfig, store=store)
    site = ContrailSite(contrail.url, tmp_path)
    await asyncio.to_thread(stack.enter_context, running(manager))
    await asyncio.to_thread(manager.wait_until_it_leads)
    pods = await asyncio.to_thread(attach_both, stack, site, tmp_path)
    assert len({address for pod in pods for address in pod.addresses}) == 4
    assert await asyncio.to_thread(unreached, pods) == []


def attach_both(stack: ExitStack, site: ContrailSite, folder: Path) -> list[Attached]:
    """Starts two nodes on one fabric, and attaches the pod of each."""
    fabric = Netns("fabric")
    stack.callback(fabric.delete)
    stack.callback(idle_connections.close)
    fabric.ip("link", "add", "fabric", "mtu", str(MTU), "up", "type", "bridge", "mcast_snooping", "0")
    nodes = [make_node(stack, number, site, fabric, folder / str(number)) for number in NUMBERS]
    return [attach(stack, node, f"on-{number}") for number, node in zip(NUMBERS, nodes, strict=True)]


def make_node(stack: ExitStack, number: int, site: ContrailSite, fabric: Netns, folder: Path) -> Node:
    store = {"kind": "vnc", "url": site.url}
    node = Node(number, site, fabric, folder, families=(0,), store=store)
    stack.callback(node.close)
    node.start()
    return node


def attach(stack: ExitStack, node: Node, name: str) -> Attached:
    sandbox = Netns("pod")
    stack.callback(sandbox.delete)
    answer = node.add(name, sandbox, namespace=NAMESPACE)
    assert "interfaces" in answer, answer
    stack.callback(node.delete, name, sandbox, namespace=NAMESPACE)
    with node.namespace.inside():
        served = node.agent.interfaces(NAMESPACE, name)
    return Attached(node, sandbox, [each["ip-address"] for each in served])


def unreached(pods: list[Attached]) -> list[tuple[str, str]]:
    """Returns source and target of what gets no answer."""
    return [
        (source.node.name, address)
        for source in pods
        for target in pods
        for address in target.addresses
        if target is not source and not reaches(source.sandbox, address, timeout=10)
    ]
