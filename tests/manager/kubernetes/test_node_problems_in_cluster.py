"""What a node reports of itself, such as a missing kernel module or a conflict, becomes an event on the node."""

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.kubernetes.node_reports import NodeReports
from tests.manager.kubernetes.conftest import Managed
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually


def events_on_nodes(server: FakeApiServer) -> list[tuple[str, str, str]]:
    """Node, reason and message of the events on nodes."""
    events = server.storage.objects(Kind("", "v1", "Event", "events")).values()
    return [
        (event["involvedObject"]["name"], event["reason"], event["message"])
        for event in events
        if event["involvedObject"]["kind"] == "Node"
    ]


async def test_a_node_that_reports_a_missing_module_has_an_event(
    managed: Managed, server: FakeApiServer, client: KubeClient
) -> None:
    async with managed():
        report = NodeReport("2026-11-21T12:00:00Z", "node-1", missing_modules=("bridge",))
        await NodeReports(client, "node-1").write(report)
        await eventually(lambda: events_on_nodes(server))
        ((node, reason, message),) = events_on_nodes(server)
    assert (node, reason) == ("node-1", "KernelModuleMissing")
    assert message.startswith("node node-1: its kernel lacks module bridge: ")


async def test_a_node_that_reports_a_conflict_has_an_event(
    managed: Managed, server: FakeApiServer, client: KubeClient
) -> None:
    conflict = "/etc/cni/net.d/05-other.conflist: sorts before 10-contrail.conflist"
    async with managed():
        await NodeReports(client, "node-1").write(NodeReport("2026-11-21T12:00:00Z", "node-1", conflicts=(conflict,)))
        await eventually(lambda: events_on_nodes(server))
    assert events_on_nodes(server) == [("node-1", "NodeConflict", f"node node-1: {conflict}")]
