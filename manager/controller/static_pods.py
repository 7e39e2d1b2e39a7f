"""Static pods without a mirror pod: they keep running, so their assignment is kept for a while.

The API server shows a static pod only through a mirror pod. Anybody may delete the mirror pod; kubelet recreates it
within about a minute, and the static pod keeps running. It would break if its assignment were removed, or its addresses
allocated to others. So after a mirror pod is deleted without evidence that the sandbox was removed, the manager waits
for its return. A pod that kubelet ended in order is released once the node reports the ports as unplugged.

A node's report is repeated until it changes, and an agent that cannot reach the API server leaves an outdated report
for minutes. Meanwhile another sandbox with the same interfaces may have replaced the reported one. Therefore:

- A report that began before the mirror pod was deleted does not count, however often it is repeated.
- A report that began later counts only after a delay, since it may have been on its way.
- If the node reported first, the full timeout applies.
- The report of another node than the pod's does not count.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from manager.controller.pod_record import Assignment, PodRecord
from manager.controller.pod_writer import IsPlugged

MIRROR_TIMEOUT = 300.0
"""Seconds to wait for a mirror pod: kubelet checks its mirror pods about once a minute."""

_REPORT_DELAY = 30.0
"""Seconds after the deletion of a mirror pod at which a node's report can no longer be older than the deletion."""

REPORT_WINDOW = 30.0
"""Seconds within which a current report is repeated several times; one that is not repeated was withdrawn."""


class _Absence(NamedTuple):
    assignment: Assignment
    since: float


class _Port(NamedTuple):
    node: str
    vmi_uuid: str


class _Reports:
    """Start of each port's current series of "unplugged" reports; a withdrawn report is forgotten."""

    def __init__(self) -> None:
        self._times: OrderedDict[_Port, tuple[float, float]] = OrderedDict()  # first and last, ordered by last

    def add(self, port: _Port, now: float) -> float:
        """Adds a report, and returns when its uninterrupted series began."""
        while self._times and next(iter(self._times.values()))[1] < now - REPORT_WINDOW:
            self._times.popitem(last=False)
        # Popped and inserted again, so that the order stays that of the last report.
        first, _ = self._times.pop(port, (now, now))
        self._times[port] = (first, now)
        return first


class StaticPods:
    """`reconcile_after` queues a pod key after some seconds; `clock` returns monotonic seconds.

    `is_plugged` says whether a port of a virtual machine may be plugged: if none is, nothing is waited for.
    """

    def __init__(
        self, *, reconcile_after: Callable[[str, float], None], is_plugged: IsPlugged, clock: Callable[[], float]
    ) -> None:
        self._reconcile_after = reconcile_after
        self._is_plugged = is_plugged
        self._clock = clock
        self._absences: dict[str, _Absence] = {}
        self._keys: dict[str, str] = {}  # pod keys by the interfaces of the absent
        self._reports = _Reports()

    def awaits_mirror(self, key: str, record: PodRecord) -> bool:
        """Whether the assignment is kept, since the mirror pod may return; schedules the next reconciliation."""
        assignment = record.assignment
        if assignment is None or not self._is_absent(assignment, record):
            self.forget(key)
            return False
        absence = self._absences.get(key)
        if absence is None:
            absence = self._add(key, assignment)
        # The absence is kept until the release succeeded: a failing store must not restart the timeout.
        left = absence.since + MIRROR_TIMEOUT - self._clock()
        if left <= 0:
            return False
        self._reconcile_after(key, left)
        return True

    def unplugged(self, node: str, vmi_uuid: str) -> str | None:
        """Applies a node's report of this interface; returns the key of the pod that has ended according to it."""
        now = self._clock()
        reported_since = self._reports.add(_Port(node, vmi_uuid), now)
        key = self._keys.get(vmi_uuid)
        if key is None or self._absences[key].assignment.node != node:
            return None
        absent_since = self._absences[key].since
        return key if reported_since > absent_since and now >= absent_since + _REPORT_DELAY else None

    def forget(self, key: str) -> None:
        """Ends the wait for this pod's mirror pod."""
        absence = self._absences.pop(key, None)
        for interface in absence.assignment.interfaces if absence else ():
            del self._keys[interface]

    def _is_absent(self, assignment: Assignment, record: PodRecord) -> bool:
        return (
            record.pod is None
            and assignment.has_mirror_pod
            and record.ended_uid != assignment.uuid
            and self._is_plugged(assignment.uuid)
        )

    def _add(self, key: str, assignment: Assignment) -> _Absence:
        absence = self._absences[key] = _Absence(assignment, self._clock())
        self._keys.update(dict.fromkeys(assignment.interfaces, key))
        return absence
