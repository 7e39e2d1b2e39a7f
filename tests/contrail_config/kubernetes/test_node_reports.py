"""Node reports: each agent writes one object, whatever happened to it, and detects another agent of its node.

Runs on each API server, except for faults that only the fake one can simulate.
"""

import uuid
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from contrail_config.errors import NotFoundError, StoreUnavailableError
from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.errors import KubeError, KubeForbiddenError, KubeUnavailableError
from contrail_config.kube.resource import Resource
from contrail_config.kubernetes.crds import crds, ensure_crds
from contrail_config.kubernetes.kinds import CONTRAIL_NODES, FullMetadata, NodeReport
from contrail_config.kubernetes.node_reports import NodeReports
from tests.support.apiservers import API_SERVERS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.next_release import WRITTEN, next_definitions

UNPLUGGED = ("168128fa-3339-44ff-b96d-a71190b82887", "03343cc1-ef24-44bf-bbeb-b33aba45d1dd")
REPORT = NodeReport("2026-11-21T12:00:00Z", "worker_1", {"agent": "1.0"}, unplugged=UNPLUGGED, pending_deletes=1)
LATER = msgspec.structs.replace(REPORT, reported_at="2026-11-21T12:00:10Z", unplugged=(), last_errors=("disk full",))
OTHER = msgspec.structs.replace(REPORT, instance="worker_2")


class WrittenNode(msgspec.Struct):
    """A report as stored on the server, without defaults."""

    metadata: FullMetadata
    status: dict[str, Any]


AS_WRITTEN = Resource(
    CONTRAIL_NODES.group,
    CONTRAIL_NODES.version,
    CONTRAIL_NODES.kind,
    CONTRAIL_NODES.plural,
    WrittenNode,
    namespaced=False,
)


def columns(resource: Resource[Any]) -> list[dict[str, Any]]:
    """Columns of a kind in `kubectl get`."""
    (version,) = crds()[f"{resource.plural}.{resource.group}"]["spec"]["versions"]
    return [*version["additionalPrinterColumns"]]


class TestOnEachServer:
    """Behaviour on every API server."""

    @pytest.fixture(params=API_SERVERS)
    async def client(self, request: pytest.FixtureRequest) -> AsyncIterator[KubeClient]:
        async with API_SERVERS[request.param]() as access, connect(access) as client:
            await ensure_crds(client)
            yield client

    @pytest.fixture
    async def node(self, client: KubeClient) -> AsyncIterator[str]:
        name = f"node-{uuid.uuid4().hex[:12]}"
        yield name
        await client.delete(CONTRAIL_NODES, name)

    async def test_the_newest_report_replaces_the_previous_one(self, client: KubeClient, node: str) -> None:
        reports = NodeReports(client, node)
        for report in (REPORT, LATER):
            assert await reports.write(report) is None
            assert (await client.get(CONTRAIL_NODES, node)).status == report

    async def test_integer_columns_are_written_even_if_0(self, client: KubeClient, node: str) -> None:
        await NodeReports(client, node).write(NodeReport("2026-11-21T12:00:00Z", "worker_1"))
        written = await client.get(AS_WRITTEN, node)
        numbers = [column["jsonPath"] for column in columns(CONTRAIL_NODES) if column["type"] == "integer"]
        numbers.remove(".status.tunnelMtu")  # no count: one that is not known is not 0
        assert {path: written.status.get(path.removeprefix(".status.")) for path in numbers} == dict.fromkeys(
            numbers, 0
        )
        assert sorted(written.status) == ["instance", "pendingDeletes", "reportedAt"], "no other field is written"

    async def test_an_earlier_reporter_is_a_predecessor(self, client: KubeClient, node: str) -> None:
        await NodeReports(client, node).write(OTHER)
        assert await NodeReports(client, node).write(REPORT) is None
        assert (await client.get(CONTRAIL_NODES, node)).status == REPORT

    async def test_two_agents_of_one_node_detect_each_other(self, client: KubeClient, node: str) -> None:
        one, other = NodeReports(client, node), NodeReports(client, node)
        assert await one.write(REPORT) is None
        assert await other.write(OTHER) is None
        assert await one.write(REPORT) == "worker_2"
        assert await other.write(OTHER) == "worker_1"
        assert (await client.get(CONTRAIL_NODES, node)).status == OTHER

    async def test_labels_of_users_are_preserved_and_are_no_conflict(self, client: KubeClient, node: str) -> None:
        reports = NodeReports(client, node)
        await reports.write(REPORT)
        await client.patch(CONTRAIL_NODES, node, {"metadata": {"labels": {"checked": "yes"}}})
        assert await reports.write(LATER) is None
        stored = await client.get(CONTRAIL_NODES, node)
        assert (stored.metadata.labels, stored.status) == ({"checked": "yes"}, LATER)

    async def test_fields_of_a_newer_agent_survive_a_rollback(self, client: KubeClient, node: str) -> None:
        async with next_definitions(client):
            await NodeReports(client, node).write(REPORT)
            await client.patch(CONTRAIL_NODES, node, {"status": {"added": WRITTEN}})
            reports = NodeReports(client, node)
            for report in (REPORT, LATER):
                await reports.write(report)
                written = await client.get(AS_WRITTEN, node)
                assert written.status["added"] == WRITTEN
                assert msgspec.convert(written.status, NodeReport) == report

    async def test_a_deleted_report_is_recreated(self, client: KubeClient, node: str) -> None:
        reports = NodeReports(client, node)
        await reports.write(REPORT)
        await client.delete(CONTRAIL_NODES, node)
        assert await reports.write(LATER) is None
        assert (await client.get(CONTRAIL_NODES, node)).status == LATER


class TestFailingServer:
    """Reports survive failures of the server."""

    @pytest.fixture(autouse=True)
    async def definitions(self, client: KubeClient) -> None:
        await ensure_crds(client)

    @pytest.fixture
    def reports(self, client: KubeClient) -> NodeReports:
        return NodeReports(client, "worker-1")

    @pytest.mark.parametrize("lost", [0, 1])
    async def test_a_report_without_response_is_no_conflict(
        self, client: KubeClient, server: FakeApiServer, reports: NodeReports, lost: int
    ) -> None:
        for number, report in enumerate((REPORT, LATER)):
            server.faults.lost_responses = int(number == lost)
            with_answer = reports.write(report)
            try:
                assert await with_answer is None
            except StoreUnavailableError:
                assert await reports.write(report) is None
            assert (await client.get(CONTRAIL_NODES, "worker-1")).status == report

    @pytest.mark.parametrize(("code", "cause"), [(403, KubeForbiddenError), (500, KubeUnavailableError)])
    async def test_an_error_names_the_node_and_can_be_retried(
        self, client: KubeClient, server: FakeApiServer, reports: NodeReports, code: int, cause: type[KubeError]
    ) -> None:
        server.faults.reject(code, verb="create", times=4)
        with pytest.raises(StoreUnavailableError, match="report of node worker-1") as caught:
            await reports.write(REPORT)
        assert type(caught.value.__cause__) is cause
        server.faults.rejections.clear()
        assert await reports.write(REPORT) is None

    async def test_the_newest_report_is_written_after_an_outage(
        self, client: KubeClient, server: FakeApiServer, reports: NodeReports
    ) -> None:
        await reports.write(REPORT)
        await server.stop()
        with pytest.raises(StoreUnavailableError):
            await reports.write(REPORT)
        await server.start()
        assert await reports.write(LATER) is None
        assert (await client.get(CONTRAIL_NODES, "worker-1")).status == LATER

    async def test_a_report_is_recreated_after_data_loss(
        self, client: KubeClient, server: FakeApiServer, reports: NodeReports
    ) -> None:
        await reports.write(REPORT)
        server.empty_storage()
        await ensure_crds(client)
        assert await reports.write(LATER) is None
        assert (await client.get(CONTRAIL_NODES, "worker-1")).status == LATER

    async def test_permanent_conflicts_end_with_an_error(self, server: FakeApiServer, reports: NodeReports) -> None:
        await reports.write(REPORT)
        server.faults.conflicts = True
        with pytest.raises(StoreUnavailableError, match="worker-1"):
            await reports.write(LATER)

    async def test_a_missing_kind_raises_not_found(self, server: FakeApiServer, reports: NodeReports) -> None:
        server.empty_storage()
        with pytest.raises(NotFoundError, match="report of node worker-1"):
            await reports.write(REPORT)
