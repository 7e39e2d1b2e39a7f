"""Reports the node's state to the cluster: changes at most every 10 s, new requests for ports at once, and a heartbeat.

5000 nodes without changes cause about 17 writes per second. A force-deleted pod causes two more on its node: one while
its ports are plugged and one when they are unplugged. Requests for ports are limited by managers. A failed write loses
nothing, because each report contains the complete state; it is retried with exponential backoff.
"""

import asyncio
import contextlib
import itertools
import logging
import math
import random
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from agent_api.node.expiring_set import ExpiringSet
from agent_api.node.installer_report import InstallerReport, read_installer_report
from agent_api.node.port_answers import port_answers
from agent_api.node.unplugged import UnpluggedPorts
from agent_api.node_agent import NodeAgent
from contrail_config.errors import StoreError
from contrail_config.kube.backoff import Backoff
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.kubernetes.port_requests import PortRequests
from contrail_config.objects import Refusal

log = logging.getLogger(__name__)

_MAX_ENTRIES = 8
"""Errors, and likewise conflicts and reasons why the agent is not ready, in a report."""

_MAX_ERROR_LENGTH = 256  # characters
_MAX_REASON_LENGTH = 256  # characters
_MAX_REFUSAL_LENGTH = 1024  # characters
_MAX_REFUSED = 32
"""Refusals in a report, the same ones each time."""

_MAX_REPAIRED = 32
"""Networks that were repaired, the latest ones."""

_MAX_MODULES = 16
_ERROR_TTL = 3600.0  # seconds
_CONFLICT_TTL = 900.0  # seconds; longer than the heartbeats by which two agents of one node detect each other


class ReportWriter(Protocol):
    """The destination of reports."""

    async def write(self, report: NodeReport) -> str | None:
        """See `contrail_config.kubernetes.node_reports.NodeReports.write`."""


class ReportIntervals(msgspec.Struct, frozen=True):
    """Intervals in seconds; each is extended by up to a quarter at random, so that nodes do not write all at once."""

    interval: float = 10.0  # minimum between two writes
    heartbeat: float = 260.0  # maximum between two writes
    max_backoff: float = 300.0  # maximum backoff after failures


class _ErrorRecorder(logging.Handler):
    """Adds the message of each logged error to a set."""

    def __init__(self, errors: ExpiringSet) -> None:
        super().__init__(logging.ERROR)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        """Adds the message of a record. A file name in it that is not UTF-8 could not be sent."""
        self._errors.add(_sendable(record.getMessage())[:_MAX_ERROR_LENGTH])


class NodeReporter:
    """Reports the state of an agent's node as soon as its VirtualMachines are listed.

    `versions` maps components to versions; `installer_report` is the file of the node installer, empty if there can be
    none; `clock` returns monotonic seconds.
    """

    def __init__(
        self,
        agent: NodeAgent,
        writer: ReportWriter,
        *,
        versions: Mapping[str, str],
        installer_report: str = "",
        intervals: ReportIntervals | None = None,
        port_requests: PortRequests | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._agent = agent
        self._virtual_machines = agent.virtual_machines
        self._refusals = agent.refusals
        self._tunnel_mtu = agent.tunnel_mtu
        self._readiness = agent.readiness
        self._datapath = agent.details["datapath"]
        self._missing_modules = agent.missing_modules
        self._daemon_version = agent.daemon_version
        self._repairs = agent.repairs
        self._network_repairs = agent.network_repairs
        self._writer = writer
        self._versions = dict(versions)
        self._installer_report = installer_report
        self._intervals = intervals or ReportIntervals()
        self._port_requests = port_requests or PortRequests()
        self._clock = clock
        self._unplugged = UnpluggedPorts(agent.virtual_machines, agent.ports, clock=clock)
        self.errors = ExpiringSet(max_size=_MAX_ENTRIES, ttl=_ERROR_TTL, clock=clock)
        self._conflicts = ExpiringSet(max_size=_MAX_ENTRIES, ttl=_CONFLICT_TTL, clock=clock)
        self._backoff = Backoff(first=2 * self._intervals.interval, longest=self._intervals.max_backoff)
        self.instance = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self._last: NodeReport | None = None
        self._next_heartbeat = -math.inf

    async def run(self) -> None:
        """Reports until cancelled."""
        with record_errors(self.errors):
            # Agents that start together must not report together.
            delay = random.uniform(0.0, self._intervals.interval)  # noqa: S311 - jitter needs no secrecy
            while True:
                await self._wait(delay)
                delay = await self.report()

    async def report(self) -> float:
        """Writes a report if it has changed or the heartbeat is due; returns the seconds until the next call."""
        report = self._compose(await self._read_installer_report())
        if self._virtual_machines.synced and (self._has_changed(report) or self._is_heartbeat_due()):
            try:
                await self._write(report)
            except StoreError as error:
                delay = self._backoff.next_pause()
                log.warning("%s; retrying in %.0f s", error, delay)
                return delay
            self._backoff.reset()
        return _jittered(self._intervals.interval)

    async def _read_installer_report(self) -> InstallerReport:
        if not self._installer_report:
            return InstallerReport()
        return await asyncio.to_thread(read_installer_report, self._installer_report)

    async def _wait(self, seconds: float) -> None:
        """Waits, but not longer than until ports are requested: somebody looks at them."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._port_requests.opened.wait()
        self._port_requests.opened.clear()

    def _compose(self, installer: InstallerReport) -> NodeReport:
        daemon = self._daemon_version()
        return NodeReport(
            reported_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            instance=self.instance,
            versions=self._versions | ({"daemon": daemon} if daemon else {}),
            unplugged=self._unplugged.interfaces(),
            pending_deletes=self._unplugged.pending(),
            conflicts=_first(self._conflicts.newest_first(), installer.conflicts, length=_MAX_REASON_LENGTH),
            last_errors=_first(installer.errors, self.errors.newest_first(), length=_MAX_ERROR_LENGTH),
            refused=tuple(map(_cut, self._refusals()[:_MAX_REFUSED])),
            tunnel_mtu=self._tunnel_mtu(),
            datapath=self._datapath,
            not_ready=_first(self._readiness(), length=_MAX_REASON_LENGTH),
            missing_modules=self._missing_modules()[:_MAX_MODULES],
            repairs=self._repairs(),
            repaired_networks=tuple(self._network_repairs()[:_MAX_REPAIRED]),
            ports=port_answers(self._agent, self._port_requests),
        )

    async def _write(self, report: NodeReport) -> None:
        other = await self._writer.write(report)
        self._last = report  # only after success: a failed report is written again
        self._next_heartbeat = self._clock() + _jittered(self._intervals.heartbeat)
        if other is not None:
            log.warning("node report: another agent reports for this node: %s (this agent: %s)", other, self.instance)
            self._conflicts.add(f"another agent reports for this node: {other}")

    def _has_changed(self, report: NodeReport) -> bool:
        return self._last is None or report != msgspec.structs.replace(self._last, reported_at=report.reported_at)

    def _is_heartbeat_due(self) -> bool:
        return self._clock() >= self._next_heartbeat


def _first(*texts: Sequence[str], length: int) -> tuple[str, ...]:
    """Returns the first texts of all lists, cut, so that they can be sent."""
    return tuple(_sendable(text)[:length] for text in itertools.chain(*texts))[:_MAX_ENTRIES]


def _sendable(text: str) -> str:
    """Returns the text without what UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()


def _cut(refusal: Refusal) -> Refusal:
    return msgspec.structs.replace(refusal, message=refusal.message[:_MAX_REFUSAL_LENGTH])


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(1.0, 1.25)  # noqa: S311 - jitter needs no secrecy


@contextlib.contextmanager
def record_errors(errors: ExpiringSet) -> Iterator[None]:
    """Records all errors that this process logs, so that they are visible without a login to the node."""
    recorder = _ErrorRecorder(errors)
    logging.getLogger().addHandler(recorder)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(recorder)
