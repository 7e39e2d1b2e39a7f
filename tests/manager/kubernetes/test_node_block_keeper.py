"""Nodes with an agent have an address of the pod network before their first pod, as long as there is a Node object."""

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import CONTRAIL_NODES, NodeReport
from contrail_config.kubernetes.node_owner import node_owner
from contrail_config.kubernetes.node_reports import NodeReports
from manager.configuration import ManagerConfiguration, PodNetworkSettings
from tests.manager.kubernetes.conftest import Managed
from tests.support import address_blocks
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import BLOCK_KIND, stored_virtual_machines

ACROSS_NODES = ManagerConfiguration(network_slices=True)


@pytest.fixture(autouse=True)
async def _definitions(client: KubeClient) -> None:
    """Agents report before a manager runs."""
    await ensure_crds(client)


def owned(server: FakeApiServer) -> dict[str, str]:
    """Allocated addresses by owner."""
    entries = address_blocks.block_entries(server.storage.objects(BLOCK_KIND).values())
    return {entry.owner: entry.address for entry in entries if entry.held is None}


async def report(client: KubeClient, node: str) -> None:
    await NodeReports(client, node).write(NodeReport("2026-11-21T12:00:00Z", node))


async def test_a_node_that_joins_gets_an_address_once_its_agent_reports(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, client: KubeClient
) -> None:
    objects.add_node("node-1")
    objects.add_node("without-agent")
    async with managed(ACROSS_NODES):
        await report(client, "node-1")
        await eventually(lambda: owned(server) == {node_owner("node-1"): "10.32.0.2"})
        await report(client, "early")
        objects.add_node("early")
        await eventually(lambda: node_owner("early") in owned(server))
        uid = objects.add_pod("web")
        await eventually(lambda: uid in stored_virtual_machines(server))
    assert node_owner("without-agent") not in owned(server)


async def test_the_next_manager_releases_no_address_of_a_node_as_orphaned(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, client: KubeClient
) -> None:
    objects.add_node("node-1")
    await report(client, "node-1")
    async with managed(ACROSS_NODES):
        await eventually(lambda: owned(server) == {node_owner("node-1"): "10.32.0.2"})
        uid = objects.add_pod("web")
        await eventually(lambda: uid in stored_virtual_machines(server))
    objects.remove_pod("web")
    async with managed(ACROSS_NODES):
        await eventually(lambda: owned(server) == {node_owner("node-1"): "10.32.0.2"})


async def test_the_address_stays_without_a_report_and_goes_with_the_node(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, client: KubeClient
) -> None:
    for node in ("node-1", "node-2"):
        objects.add_node(node)
        await report(client, node)
    both = {node_owner("node-1"), node_owner("node-2")}
    async with managed(ACROSS_NODES):
        await eventually(lambda: owned(server).keys() == both)
        await client.delete(CONTRAIL_NODES, "node-1")
        objects.remove_node("node-2")
        await eventually(lambda: owned(server).keys() == {node_owner("node-1")})


async def test_the_address_of_a_node_that_went_while_no_manager_ran_is_released(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, client: KubeClient
) -> None:
    objects.add_node("node-1")
    await report(client, "node-1")
    async with managed(ACROSS_NODES):
        await eventually(lambda: owned(server).keys() == {node_owner("node-1")})
    objects.remove_node("node-1")
    async with managed(ACROSS_NODES):
        await eventually(lambda: owned(server) == {})


async def test_without_network_slices_nodes_get_no_address(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, client: KubeClient
) -> None:
    objects.add_node("node-1")
    async with managed():
        await report(client, "node-1")
        uid = objects.add_pod("web")
        await eventually(lambda: uid in stored_virtual_machines(server))
    assert node_owner("node-1") not in owned(server)


async def test_a_small_pod_network_is_left_to_pods(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, client: KubeClient
) -> None:
    small = ManagerConfiguration(network_slices=True, pod_network=PodNetworkSettings(subnets=("10.32.0.0/24",)))
    objects.add_node("node-1")
    await report(client, "node-1")
    async with managed(small):
        uid = objects.add_pod("web")
        await eventually(lambda: uid in stored_virtual_machines(server))
    assert list(owned(server).values()) == ["10.32.0.2"]


async def test_the_subnets_of_the_pod_network_can_change_while_nodes_have_addresses(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, client: KubeClient
) -> None:
    objects.add_node("node-1")
    await report(client, "node-1")
    async with managed(ACROSS_NODES):
        await eventually(lambda: owned(server) == {node_owner("node-1"): "10.32.0.2"})
    moved = ManagerConfiguration(network_slices=True, pod_network=PodNetworkSettings(subnets=("10.48.0.0/16",)))
    async with managed(moved):
        await eventually(lambda: owned(server) == {node_owner("node-1"): "10.48.0.2"})
