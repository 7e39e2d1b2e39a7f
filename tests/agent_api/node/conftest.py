"""An agent that reports to whoever stands in the place of the API server, by a clock that tests move."""

from collections.abc import Callable

import pytest

from agent_api.node.reporter import NodeReporter
from contrail_config.errors import StoreError
from contrail_config.kubernetes.kinds import NodeReport
from tests.support.agent import ServedAgent
from tests.support.clock import FakeClock

VERSIONS = {"agent": "1.2.3"}


class KeptReports:
    """Keeps what is reported; fails by `failure` if there is one, and tells of `other` agents, one for each write."""

    def __init__(self) -> None:
        self.written: list[NodeReport] = []
        self.other: list[str] = []
        self.failure: StoreError | None = None
        self.tried = 0

    async def write(self, report: NodeReport) -> str | None:
        self.tried += 1
        if self.failure is not None:
            raise self.failure
        self.written.append(report)
        return self.other.pop() if self.other else None


MakeReporter = Callable[[ServedAgent], NodeReporter]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000.0)


@pytest.fixture
def reports() -> KeptReports:
    return KeptReports()


@pytest.fixture
def make_reporter(reports: KeptReports, clock: FakeClock) -> MakeReporter:
    def make(served: ServedAgent) -> NodeReporter:
        return NodeReporter(served.agent, reports, versions=VERSIONS, clock=clock)

    return make


@pytest.fixture
def reporter(served: ServedAgent, make_reporter: MakeReporter) -> NodeReporter:
    return make_reporter(served)
