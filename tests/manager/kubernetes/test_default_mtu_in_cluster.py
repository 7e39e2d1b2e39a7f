"""The tunnel MTUs that nodes report reach the virtual machines of new pods, also with another manager."""

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.kubernetes.node_reports import NodeReports
from manager.configuration import ManagerConfiguration
from tests.manager.kubernetes.conftest import Managed
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import stored_virtual_machines

ACROSS_NODES = ManagerConfiguration(network_slices=True)


async def report(client: KubeClient, node: str, mtu: int) -> None:
    await NodeReports(client, node).write(NodeReport("2026-11-21T12:00:00Z", node, tunnel_mtu=mtu))


async def mtu_of(objects: ClusterObjects, server: FakeApiServer, name: str) -> int:
    """Returns the MTU of a new pod."""
    uid = objects.add_pod(name)
    await eventually(lambda: uid in stored_virtual_machines(server))
    return stored_virtual_machines(server)[uid].interfaces[0].mtu


async def test_new_pods_get_what_the_nodes_report(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, client: KubeClient
) -> None:
    async with managed(ACROSS_NODES):
        await report(client, "node-1", 1450)
        await report(client, "node-2", 1400)
        assert await mtu_of(objects, server, "first") == 1400
    async with managed(ACROSS_NODES):
        assert await mtu_of(objects, server, "second") == 1400
