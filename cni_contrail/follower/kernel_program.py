"""The node's kernel as it is programmed: the last desired state, what was done for it, and what is to be reported.

Two threads use it, one at a time: one brings new desired states and audits, the other repairs what notifications say.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.node_outcome import INDEX_0, NodeOutcome
from cni_contrail.datapath.node_reconciler import STALE_SECONDS, NodeReconciler
from cni_contrail.drift.drift_watch import DriftWatch
from cni_contrail.drift.judgement import possible_drift
from cni_contrail.drift.possible_drift import CHANGED_BY_PODS, CHANGED_BY_ROUTED_PODS, PossibleDrift, gone_links
from cni_contrail.follower.agent import Changes, Report, send_report
from cni_contrail.follower.changed_networks import changed_networks
from cni_contrail.follower.desired_state import DesiredState
from cni_contrail.follower.rehearsal import Rehearsal, Rehearse, nothing_is_missing
from cni_contrail.follower.repair_schedule import RepairSchedule
from cni_contrail.link.counters import Counters
from cni_contrail.quoting import listed, quoted

_AUDIT_INTERVAL = 30.0  # seconds
_COUNTERS_INTERVAL = 25.0  # seconds; below that of audits, so that each of these has them
_NOTHING_DONE = NodeOutcome.nothing()
BY_AUDIT = "audit"
"""Kind of repairs of what the kernel had not notified of."""

_EVERYTHING = -1  # in place of a network: notifications of all of them were lost
_LOST = PossibleDrift(frozenset({"notifications lost"}), frozenset(), frozenset())


class FollowerLog(Protocol):
    """Log of the process: that of the plugin, or a `logging.Logger`."""

    def info(self, message: str, /) -> None:
        """Logs an end of trouble."""

    def warning(self, message: str, /) -> None:
        """Logs trouble that ends by itself."""

    def error(self, message: str, /) -> None:
        """Logs what prevents traffic."""


class KernelProgram:
    """Programs the kernel of the calling thread's network namespace, the node's. Thread-safe.

    `follower` is the name under which it reports. `rehearse` is called before the first desired state is programmed,
    and again until the kernel lacks no module. Without `watch` drift is found only by `audit`. `daemon_version` is that
    of the node daemon, if this is in it. `clock` is monotonic, in seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        follower: str,
        reconciler: NodeReconciler,
        log: FollowerLog,
        *,
        rehearse: Rehearse = nothing_is_missing,
        daemon_version: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint = endpoint
        self._follower = follower
        self._daemon_version = daemon_version
        self._rehearsal = Rehearsal(rehearse)
        self._reconciler = reconciler
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._report_lock = threading.Lock()  # reports arrive in the order of what they say
        self._watch: DriftWatch | None = None
        self._schedule = RepairSchedule()
        self._desired: DesiredState | None = None
        self._outcome = _NOTHING_DONE
        self._problems: dict[int, str] = {}  # that are logged
        self.unreported = Changes(0, 0)
        self._seconds = 0.0
        self._audited = 0.0
        self._counted = -math.inf  # when counters of ports were read for a report that arrived

    @property
    def version(self) -> str:
        """Version of the last desired state, empty before the first."""
        return "" if self._desired is None else self._desired.version

    @property
    def has_stale(self) -> bool:
        """Whether there are networks to remove later."""
        return self._reconciler.has_stale

    def watch(self, watch: DriftWatch | None) -> None:
        """Lets `repair` repair what the watch finds; with None it has nothing to repair."""
        with self._lock:
            self._watch = watch
            self._reconciler.observe(watch)

    def program(self, desired: DesiredState) -> None:
        """Brings the kernel to a desired state; one that it has already is an audit.

        Of a new one only what differs from the last one, and what has problems, unless all networks are concerned or
        have not been audited for a while, since new ones keep coming.
        """
        with self._lock:
            self._rehearsal.repeat(desired.routed.masquerade)
            is_audit = desired.version == self.version
            before, self._desired = self._desired, desired
            changed = None if before is None or is_audit or self._is_overdue() else changed_networks(before, desired)
            if changed is None:
                self._reconcile(desired, is_audit=is_audit)
            else:
                self._reconcile_changed(desired, changed)

    def audit(self) -> None:
        """Brings the kernel to the last desired state again, if there is one."""
        with self._lock:
            if self._desired is not None:
                self._reconcile(self._desired, is_audit=True)

    def forget(self) -> None:
        """Forgets the desired state: another process programs the kernel from now."""
        with self._lock:
            self._desired = None
            self._outcome = _NOTHING_DONE
            self.unreported = Changes(0, 0)
            self._counted = -math.inf
            self._schedule = RepairSchedule()
            self._reconciler.forget()

    def repair(self) -> bool:
        """Audits networks that may have drifted, by their notifications; returns whether there is news to report."""
        with self._lock:
            if self._watch is None:
                return False
            changes = self._watch.read()
            if self._desired is None:
                return False
            desired = self._desired
            if changes.is_incomplete:
                self._schedule.note(_EVERYTHING, _LOST, self._clock())
            for vni, drift in possible_drift(
                desired.networks, desired.routed, desired.underlay, changes.by_network
            ).items():
                self._schedule.note(vni, drift, self._clock())
            due = self._schedule.take_due(self._clock())
            if _EVERYTHING in due:
                self._log.warning("datapath: notifications of the kernel were lost: all networks are audited")
                self._reconcile(desired, is_audit=True)
                # The audit of everything is expensive, so it backs off whatever it found.
                self._schedule.audited(_EVERYTHING, _LOST, self._clock(), changes=1)
                return True
            return bool(due) and self._repair(desired, due)

    def next_repair(self) -> float | None:
        """Returns the seconds until a network is to be audited, None if none is."""
        with self._lock:
            due = self._schedule.next_due()
        return None if due is None else max(0.0, due - self._clock())

    def report(self) -> None:
        """Sends what was done since the last report, and the state of all networks. Raises `PluginError`.

        With the counters of all ports, unless the agent has got them less than 25 s ago: while networks change there
        may be many reports in a second.
        """
        with self._report_lock:
            with self._lock:
                counted = self._clock()
                is_counted = counted - self._counted >= _COUNTERS_INTERVAL
                report = Report(
                    self.version,
                    self.unreported,
                    self._told_outcome(),
                    self._seconds,
                    self._reconciler.tunnel_mtu,
                    self._daemon_version,
                    self._counters() if is_counted else None,
                )
                self.unreported = Changes(0, 0)
            sent = False
            try:
                send_report(self._endpoint, self._follower, report)
                sent = True
                if report.counters:  # without any port the next report may have the first one's
                    self._counted = counted
            finally:
                if not sent:
                    with self._lock:
                        self.unreported = self.unreported.plus(report.changes)

    def _counters(self) -> dict[int, dict[str, Counters]]:
        return {} if self._desired is None else self._reconciler.counters(self._desired.networks, self._desired.routed)

    def _reconcile(self, desired: DesiredState, *, is_audit: bool) -> None:
        started = self._clock()
        with_lost_ports = self._schedule.clear()
        if self._watch is not None:  # all that has changed until now is seen by this round
            seen = self._watch.read().by_network
            with_lost_ports |= {vni for vni, changes in seen.items() if gone_links(changes)}
        self._audited = started
        before, had_stale = self._outcome, self._reconciler.has_stale
        outcome = self._reconciler.reconcile(desired.networks, desired.routed, desired.underlay, desired.fabric_subnets)
        failed = {vni: links for vni, links in before.links.items() if vni in outcome.problems}
        self._outcome = outcome._replace(links=failed | outcome.links)
        # What is stale is removed by an audit, too.
        repaired = self._repaired_by_audit(before, with_lost_ports) if is_audit and not had_stale else {}
        made, repairs = sum(outcome.changes.values()), sum(repaired.values())
        if repaired:
            self._log.warning(f"datapath: {repairs} changes repaired what another program had changed")
        self._log_removed(outcome)
        kinds, networks = {BY_AUDIT: len(repaired)} if repaired else {}, dict.fromkeys(repaired, 1)
        self.unreported = self.unreported.plus(Changes(made - repairs, repairs, kinds, networks))
        self._seconds = self._clock() - started
        self._log_problems()

    def _repaired_by_audit(self, before: NodeOutcome, with_lost_ports: frozenset[int]) -> dict[int, int]:
        """Returns changes by number of the network, of those whose pods have not changed since."""
        return {
            vni: changes
            for vni, changes in self._outcome.changes.items()
            if changes and vni not in with_lost_ports and not _have_pods_changed(vni, before, self._outcome)
        }

    def _is_overdue(self) -> bool:
        age = self._clock() - self._audited
        return age >= (STALE_SECONDS + 1 if self._reconciler.has_stale else _AUDIT_INTERVAL)

    def _reconcile_changed(self, desired: DesiredState, changed: frozenset[int]) -> None:
        started = self._clock()
        missing = {vni for vni, links in self._outcome.missing.items() if links}
        chosen = changed | self._outcome.problems.keys() | self._outcome.unconnected | missing
        outcome = self._reconciler.repair(desired.networks, desired.routed, desired.underlay, chosen)
        self._outcome = self._outcome.updated(outcome, chosen)
        self._log_removed(outcome)
        self.unreported = self.unreported.plus(Changes(sum(outcome.changes.values()), 0))
        self._seconds = self._clock() - started
        self._log_problems()

    def _repair(self, desired: DesiredState, due: dict[int, PossibleDrift]) -> bool:
        before = self._outcome
        outcome = self._reconciler.repair(desired.networks, desired.routed, desired.underlay, due)
        self._outcome = before.updated(outcome, due)
        made, repaired, repairs, networks = sum(outcome.changes.values()), 0, Counter[str](), dict[int, int]()
        for vni, found in due.items():
            changes = outcome.changes.get(vni, 0)
            of_pods = CHANGED_BY_PODS if vni != INDEX_0 else CHANGED_BY_ROUTED_PODS
            is_of_pods = bool(found.lost_ports) or _have_pods_changed(vni, before, outcome)
            drift = found.without(of_pods) if is_of_pods else found
            self._schedule.audited(vni, drift, self._clock(), changes=changes)
            if changes and drift.objects:  # what a deleted port has left is removed, not repaired
                repaired += changes
                networks[vni] = 1
                repairs.update(kind.replace(" ", "-") for kind in drift.objects)
                self._log.warning(
                    f"datapath: {_network(vni)}: repaired after a change by {_cause(drift)} ({changes} changes)"
                )
        self._log_removed(outcome)
        self.unreported = self.unreported.plus(Changes(made - repaired, repaired, repairs, networks))
        self._log_problems()
        return made > 0 or (before.problems, before.missing) != (self._outcome.problems, self._outcome.missing)

    def outcome(self) -> NodeOutcome:
        """Returns the state of all networks, as it is reported: fights with other programs are problems."""
        with self._lock:
            return self._told_outcome()

    def _told_outcome(self) -> NodeOutcome:
        problems = dict(self._outcome.problems)
        known = () if self._desired is None else (INDEX_0, *(network.vni for network in self._desired.networks))
        for vni, fight in self._schedule.fights(self._clock(), known).items():
            problems[vni] = f"{fight}; {problems[vni]}" if vni in problems else str(fight)
        of_index_0, missing = problems.get(INDEX_0, ""), self._rehearsal.problem
        if missing not in of_index_0:  # first, since STATUS looks for it there
            problems[INDEX_0] = f"{missing}; {of_index_0}" if of_index_0 else missing
        return self._outcome._replace(problems=problems)

    def _log_removed(self, outcome: NodeOutcome) -> None:
        for vni, tables in outcome.removed_tables.items():
            names = listed([f"table {quoted(table)}" for table in tables])
            self._log.warning(f"datapath: {_network(vni)}: removed {names} of another program")

    def _log_problems(self) -> None:
        problems = self._told_outcome().problems
        for vni, problem in problems.items():
            if self._problems.get(vni) != problem:
                self._log.error(f"datapath: {_network(vni)}: {problem}")
        self._problems = problems


def _have_pods_changed(vni: int, before: NodeOutcome, after: NodeOutcome) -> bool:
    """Whether an ADD or DEL was between two audits, as far as links tell: not those of one pod, one after the other."""
    return vni in after.links and before.links.get(vni) != after.links[vni]


def _network(vni: int) -> str:
    return f"network {vni}" if vni != INDEX_0 else "index 0"


def _cause(drift: PossibleDrift) -> str:
    """Returns what was changed and by whom, for people: only programs that change rules are known."""
    who = ", ".join(sorted(drift.programs)) or "another program"
    return f"{who}: {', '.join(sorted(drift.objects | drift.lost_ports))}"
