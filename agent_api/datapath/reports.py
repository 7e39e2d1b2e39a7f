"""Reports on the datapath: the latest one, its age, and totals over all of them. Kept in memory."""

import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from agent_api.datapath.report import DatapathReport, Drops, PortCounters

MAX_AGE = 60.0
"""Seconds without a report after which the datapath counts as not programmed; reports come at least every 30 s."""

REPAIR_KINDS = (
    "audit", "bridge", "filter", "forwarding-entry", "gateway", "namespace", "neighbour", "port", "route", "tunnel",
    "uplink", "other",
)  # fmt: skip
"""What had been changed; `audit`: nothing had been notified. Kinds of a newer process are counted as `other`."""

MAX_REPAIRED = 256
"""Networks whose repairs are counted: those that were repaired last."""

DROP_REASONS = ("spoofing", "broadcast", "tunnel", "mtu")


class RepairedNetwork(NamedTuple):
    """How often a network was repaired, and when last, in seconds since the epoch."""

    repairs: int
    latest: float


class DatapathReports:
    """`clock` returns monotonic seconds, `wall_clock` seconds since the epoch."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self.latest: DatapathReport | None = None  # without counters
        self.counters: PortCounters = {}  # the latest that were reported
        self.counted_at: float | None = None  # when these were, in seconds since the epoch
        self.repaired = 0
        self.drops = Counter[str]()  # by reason
        self.repairs = Counter[str]()  # by kind
        self.repaired_networks: dict[str, RepairedNetwork] = {}  # by VNI, the latest at the end
        self._clock = clock
        self._wall_clock = wall_clock
        self._counted: dict[str, Drops] = {}  # by VNI, the numbers that `drops` has
        self._since = clock()  # the time of the latest report, or of the start
        self._missing: dict[tuple[str, str], float] = {}  # when a link of a network, by VNI, was first reported missing

    def add(self, report: DatapathReport) -> None:
        """Makes the report the latest one."""
        if self.latest is not None:  # what was dropped before this process began has been counted by its predecessor
            self._count_drops(report.drops)
        # A network that could not be read has no numbers now, and the old ones may continue.
        unread = {vni: drops for vni, drops in self._counted.items() if vni in report.problems}
        self._counted = unread | report.drops
        self.repaired += report.repaired
        for kind, number in report.repairs.items():
            self.repairs[kind if kind in REPAIR_KINDS else "other"] += number
        self._count_repairs(report.repaired_networks)
        if report.counters is not None:
            self.counters, self.counted_at = report.counters, self._wall_clock()
        self.latest = msgspec.structs.replace(report, counters=None)
        self._since = self._clock()
        missing = ((vni, link) for vni, links in report.missing.items() for link in links)
        self._missing = {each: self._missing.get(each, self._since) for each in missing}

    @property
    def age(self) -> float:
        """Seconds since the latest report, or since the start."""
        return self._clock() - self._since

    @property
    def is_current(self) -> bool:
        """Whether the latest report says how the kernel is now."""
        return self.latest is not None and self.age <= MAX_AGE

    def is_missing(self, vni: int, link: str) -> bool:
        """Returns whether a current report says that a port's link does not exist."""
        return self.missing_seconds(vni, link) is not None

    def missing_seconds(self, vni: int, link: str) -> float | None:
        """Returns for how long reports have said that a port's link does not exist; None if it may exist."""
        since = self._missing.get((str(vni), link)) if self.is_current else None
        return None if since is None else self._clock() - since

    def problems(self) -> list[str]:
        """Returns what is wrong: that nothing is reported, or the problems of the latest report by VNI."""
        if self.age > MAX_AGE:
            return [f"datapath: nothing reported for more than {MAX_AGE:g} s: contrail-cnid does not program it"]
        problems = {} if self.latest is None else self.latest.problems
        return [f"datapath: {_network(vni)}: {problems[vni]}" for vni in sorted(problems, key=int)]

    def _count_repairs(self, reported: dict[str, int]) -> None:
        for vni, number in reported.items():
            before = self.repaired_networks.pop(vni, RepairedNetwork(0, 0.0))
            self.repaired_networks[vni] = RepairedNetwork(before.repairs + number, self._wall_clock())
        for oldest in list(self.repaired_networks)[:-MAX_REPAIRED]:
            del self.repaired_networks[oldest]

    def _count_drops(self, reported: dict[str, Drops]) -> None:
        for vni, drops in reported.items():
            for reason in DROP_REASONS:
                was, current = getattr(self._counted.get(vni, Drops()), reason), getattr(drops, reason)
                # A lower number: the network was made again, and counts from 0.
                self.drops[reason] += current - was if current >= was else current


def _network(vni: str) -> str:
    return f"VNI {vni}" if vni != "0" else "index 0"
