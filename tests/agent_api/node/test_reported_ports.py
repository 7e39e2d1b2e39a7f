"""Ports that somebody looks at are in the report of the node: at once, while they are requested, and at little cost."""

import asyncio
import contextlib
from collections.abc import Callable

import msgspec
import pytest

from agent_api.datapath.kind import Datapath
from agent_api.node.port_answers import MAX_PORTS
from agent_api.node.reporter import NodeReporter, ReportIntervals
from contrail_config.embedded.store import SqliteStore
from contrail_config.kubernetes.constraints import CONSTRAINTS, problem_of
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.kubernetes.port_requests import MAX_ANSWERED, OPEN, PortRequests
from contrail_config.objects import VirtualMachine
from contrail_config.port_readings import PodPorts, PortCounters, PortDrops
from tests.agent_api.conftest import StartAgent
from tests.agent_api.datapath.test_unconnected_ports import make_pod, plug, report
from tests.agent_api.node.conftest import VERSIONS, RecordedReports
from tests.contrail_config.kubernetes.test_port_requests import requested, visible
from tests.support.fake_clock import FakeClock
from tests.support.recorded_reflector import eventually
from tests.support.served_agent import ServedAgent, until
from tests.support.virtual_machines import left_interface, make_virtual_machine

POD = make_pod()


@pytest.fixture
def requests(clock: FakeClock) -> PortRequests:
    return PortRequests(clock=clock)


@pytest.fixture
async def linux(start_agent: StartAgent, store: SqliteStore) -> ServedAgent:
    """An agent whose datapath has connected the ports of a pod."""
    served = await start_agent(datapath=Datapath.LINUX)
    await plug(served, store, [POD])
    await report(served)
    return served


@pytest.fixture
def reporter(linux: ServedAgent, reports: RecordedReports, requests: PortRequests, clock: FakeClock) -> NodeReporter:
    return NodeReporter(linux.agent, reports, versions=VERSIONS, clock=clock, port_requests=requests)


Request = Callable[..., None]


@pytest.fixture
def request_ports(requests: PortRequests) -> Request:
    """Requests the ports of a pod, as its watch delivers it."""

    def request_one(pod: VirtualMachine = POD, request: str = "first") -> None:
        requests.seen_by(visible)(requested(pod, request))

    return request_one


def answers(reports: RecordedReports) -> tuple[PodPorts, ...]:
    """Those in the latest report."""
    return reports.written[-1].ports


async def test_nobody_looks_and_no_ports_are_reported(reporter: NodeReporter, reports: RecordedReports) -> None:
    await reporter.report()
    assert answers(reports) == ()


async def test_requested_ports_have_their_states_counters_and_drops(
    linux: ServedAgent, reporter: NodeReporter, reports: RecordedReports, request_ports: Request
) -> None:
    drops = {"5": {"spoofing": 7, "broadcast": 2, "mtu": 1, "ports": {"tap0-1": 3}}}
    await report(linux, counters={"5": {"tap0-1": [1, 2, 3, 4]}}, drops=drops, problems={"0": "no route"})
    request_ports()
    await reporter.report()
    (answer,) = answers(reports)
    assert (answer.virtual_machine, answer.requested) == (POD.uuid, "first")
    assert answer.counted_at is not None
    first, second = answer.ports
    assert (first.interface, first.condition, first.reason) == (POD.interfaces[0].uuid, "Problem", "no route")
    assert (first.link, first.link_namespace, first.counters) == ("tap0-0", None, None)
    assert (second.condition, second.reason, second.link_namespace) == ("Connected", None, "contrail-5")
    assert second.counters == PortCounters(sent_packets=1, sent_bytes=2, received_packets=3, received_bytes=4)
    assert second.drops == PortDrops(spoofing=3, network_spoofing=7, network_broadcast=2, network_mtu=1)


async def test_looking_without_changes_costs_two_writes(
    reporter: NodeReporter, reports: RecordedReports, clock: FakeClock, request_ports: Request
) -> None:
    await reporter.report()
    request_ports()
    for _ in range(20):
        await reporter.report()
        clock.advance(10.0)
    assert [len(written.ports) for written in reports.written] == [0, 1, 0]


async def test_changed_counters_are_reported_while_the_request_is_open(
    linux: ServedAgent, reporter: NodeReporter, reports: RecordedReports, clock: FakeClock, request_ports: Request
) -> None:
    async def count(packets: int) -> None:
        await report(linux, counters={"5": {"tap0-1": [packets, 2, 3, 4]}})
        await reporter.report()

    request_ports()
    for packets in (1, 2):
        await count(packets)
    clock.advance(OPEN)
    for packets in (3, 4):
        await count(packets)
    sent = [
        [port.counters and port.counters.sent_packets for port in each.ports[0].ports] for each in reports.written[:2]
    ]
    assert sent == [[None, 1], [None, 2]]
    assert [len(written.ports) for written in reports.written] == [1, 1, 0]


async def test_a_request_is_answered_at_once(
    linux: ServedAgent, reports: RecordedReports, requests: PortRequests, request_ports: Request
) -> None:
    intervals = ReportIntervals(interval=3600.0)
    reporter = NodeReporter(linux.agent, reports, versions=VERSIONS, intervals=intervals, port_requests=requests)
    task = asyncio.create_task(reporter.run())
    try:
        for number, request in enumerate(("first", "second"), start=1):
            request_ports(request=request)
            await eventually(lambda number=number: len(reports.written) == number)
            assert [answer.requested for answer in answers(reports)] == [request]
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_pod_that_the_node_does_not_have_is_left_out(
    reporter: NodeReporter, reports: RecordedReports, request_ports: Request
) -> None:
    request_ports(make_virtual_machine("gone"))
    request_ports()
    await reporter.report()
    assert [answer.virtual_machine for answer in answers(reports)] == [POD.uuid]


async def test_the_largest_answers_are_what_the_definition_permits(
    linux: ServedAgent, store: SqliteStore, reporter: NodeReporter, reports: RecordedReports, request_ports: Request
) -> None:
    await report(linux, problems={"0": "x" * 512})
    for number in range(MAX_ANSWERED + 1):
        pod = make_virtual_machine(f"large-{number}")
        interfaces = (*pod.interfaces, *(left_interface(pod.uuid, index) for index in range(1, MAX_PORTS + 1)))
        pod = msgspec.structs.replace(pod, interfaces=interfaces)
        await store.put_virtual_machine(pod)
        await until(lambda pod=pod: linux.agent.virtual_machines.by_uuid(pod.uuid))  # type: ignore[misc]
        request_ports(pod)
    request_ports()
    await reporter.report()
    written = reports.written[-1]
    assert len(written.ports) == CONSTRAINTS[NodeReport]["ports"].schema["maxItems"]
    assert max(len(answer.ports) for answer in written.ports) == CONSTRAINTS[PodPorts]["ports"].schema["maxItems"]
    assert max(len(port.reason or "") for answer in written.ports for port in answer.ports) == 256
    assert problem_of(written) is None
