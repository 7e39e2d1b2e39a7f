"""A reporter with a fake report writer and a clock that tests advance."""

from collections.abc import Callable
from typing import Any, Protocol

import pytest

from agent_api.datapath.kind import Datapath
from agent_api.datapath.report import DatapathReport
from agent_api.node.reporter import NodeReporter
from contrail_config.errors import StoreError
from contrail_config.kubernetes.kinds import NodeReport
from tests.agent_api.conftest import StartAgent
from tests.support.fake_clock import FakeClock
from tests.support.served_agent import ServedAgent, until

VERSIONS = {"agent": "1.2.3"}


class RecordedReports:
    """Records reports; raises `failure` if set, and returns one of the `other` agents per write."""

    def __init__(self) -> None:
        self.written: list[NodeReport] = []
        self.other: list[str] = []
        self.failure: StoreError | None = None
        self.attempts = 0

    async def write(self, report: NodeReport) -> str | None:
        self.attempts += 1
        if self.failure is not None:
            raise self.failure
        self.written.append(report)
        return self.other.pop() if self.other else None


MakeReporter = Callable[[ServedAgent], NodeReporter]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000.0)


@pytest.fixture
def reports() -> RecordedReports:
    return RecordedReports()


@pytest.fixture
def make_reporter(reports: RecordedReports, clock: FakeClock) -> MakeReporter:
    def make(served: ServedAgent) -> NodeReporter:
        return NodeReporter(served.agent, reports, versions=VERSIONS, clock=clock)

    return make


class ReportWith(Protocol):
    """Has the daemon report these fields to the agent, and the agent report its node."""

    async def __call__(self, **fields: Any) -> None: ...


@pytest.fixture
async def report_with(start_agent: StartAgent, make_reporter: MakeReporter) -> ReportWith:
    """An agent with a Linux datapath, which has reported its node once."""
    served = await start_agent(datapath=Datapath.LINUX)
    datapath, reporter = served.agent.datapath, make_reporter(served)
    assert datapath is not None
    await until(lambda: served.agent.virtual_machines.synced)
    await reporter.report()

    async def report(**fields: Any) -> None:
        datapath.report(DatapathReport("v1", changes=0, repaired=0, seconds=0.1, **fields))
        await reporter.report()

    return report


@pytest.fixture
def reporter(served: ServedAgent, make_reporter: MakeReporter) -> NodeReporter:
    return make_reporter(served)
