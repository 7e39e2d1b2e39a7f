"""Reports of the node to whoever keeps them, for ever: what changed at most every 10 s, and that the agent lives.

Five thousand nodes that have nothing to tell make about seventeen writes a second; a node where a pod was deleted by
force makes two more, one while its ports are plugged and one when they are not. While the report cannot be written
nothing is lost but time: each report holds all that is to be told, and tries grow rarer.
"""

import asyncio
import logging
import math
import random
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from agent_api.node.errors import noted_errors
from agent_api.node.notes import Notes
from agent_api.node.unplugged import UnpluggedPorts
from agent_api.node_agent import NodeAgent
from contrail_config.errors import StoreError
from contrail_config.kube.backoff import Backoff
from contrail_config.kubernetes.kinds import NodeReport

log = logging.getLogger(__name__)

_MOST = 8
"""Errors, and conflicts, in a report."""

_ERRORS_LAST = 3600.0
_CONFLICTS_LAST = 900.0  # longer than both sides' heartbeats, by which they meet


class Reports(Protocol):
    """Where reports go."""

    async def write(self, report: NodeReport) -> str | None:
        """As `contrail_config.kubernetes.node_reports.NodeReports.write`."""


class ReportPace(msgspec.Struct, frozen=True):
    """Times in seconds; each is stretched at random by up to a quarter, so that nodes do not write all at once."""

    interval: float = 10.0  # from one write to the next one, at least
    heartbeat: float = 260.0  # for which nothing is written while nothing changes
    longest_pause: float = 300.0  # after failures


class NodeReporter:
    """Reports of an agent's node, once its machines were listed.

    `versions` are by the name of what runs; `clock` tells seconds, and is one that nobody sets.
    """

    def __init__(
        self,
        agent: NodeAgent,
        reports: Reports,
        *,
        versions: Mapping[str, str],
        pace: ReportPace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._machines = agent.machines
        self._reports = reports
        self._versions = dict(versions)
        self._pace = pace or ReportPace()
        self._clock = clock
        self._unplugged = UnpluggedPorts(agent.machines, agent.ports, clock=clock)
        self._errors = Notes(most=_MOST, seconds=_ERRORS_LAST, clock=clock)
        self._conflicts = Notes(most=_MOST, seconds=_CONFLICTS_LAST, clock=clock)
        self._backoff = Backoff(first=2 * self._pace.interval, longest=self._pace.longest_pause)
        self._instance = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self._told: NodeReport | None = None
        self._next_heartbeat = -math.inf

    async def run(self) -> None:
        """Reports until it is cancelled."""
        with noted_errors(self._errors):
            pause = random.uniform(0.0, self._pace.interval)  # noqa: S311 - jitter needs no secrecy
            while True:
                await asyncio.sleep(pause)
                pause = await self.report()

    async def report(self) -> float:
        """Writes what is to be told now, if anything is, and returns the seconds until there may be more."""
        report = self._compose()
        if self._machines.listed and (self._is_news(report) or self._is_heartbeat_due()):
            try:
                await self._write(report)
            except StoreError as error:
                pause = self._backoff.next_pause()
                log.warning("%s (again in %.0f s)", error, pause)
                return pause
            self._backoff.reset()
        return _stretched(self._pace.interval)

    def _compose(self) -> NodeReport:
        return NodeReport(
            reported_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            instance=self._instance,
            versions=self._versions,
            unplugged=self._unplugged.interfaces(),
            pending_deletes=self._unplugged.pending(),
            conflicts=self._conflicts.all(),
            last_errors=self._errors.all(),
        )

    async def _write(self, report: NodeReport) -> None:
        other = await self._reports.write(report)
        self._told = report
        self._next_heartbeat = self._clock() + _stretched(self._pace.heartbeat)
        if other is not None:
            log.warning("another agent reports of this node: %s; here is %s", other, self._instance)
            self._conflicts.add(f"another agent reports of this node: {other}")

    def _is_news(self, report: NodeReport) -> bool:
        return self._told is None or report != msgspec.structs.replace(self._told, reported_at=report.reported_at)

    def _is_heartbeat_due(self) -> bool:
        return self._clock() >= self._next_heartbeat


def _stretched(seconds: float) -> float:
    return seconds * random.uniform(1.0, 1.25)  # noqa: S311 - jitter needs no secrecy
