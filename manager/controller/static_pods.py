"""Static pods whose mirrors are away: they run on, so what they were given stays, for a while.

What a cluster shows of a static pod is a mirror. Anybody may delete that; kubelet then makes another one, within a
minute or so, and the pod never notices. It does notice if its list goes, or if its addresses are given to others. So a
mirror that goes without word that the sandbox has ended is waited for; what kubelet ended in order is freed as soon as
the node says that the ports are unplugged.

What a node says stands, and is told again and again: an agent that cannot reach the server leaves it there for minutes,
while the sandbox that it tells of has long had a successor with the same interfaces. So what was said already when the
mirror went counts for nothing, however often it is told after that. Only what began to be told later counts, and not at
once, for it may have been on its way. A node that was quicker than the mirror's end has its pod waited for to the last.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from manager.controller.pod_record import Held, PodRecord
from manager.controller.pod_writer import Plugged

PATIENCE = 300.0
"""Seconds for which a mirror is waited for: kubelet looks after its mirrors about once a minute."""

_REPORTS_LAG = 30.0
"""Seconds after which what a node reports is no older than the end of the mirror."""

_TOLD_WITHIN = 30.0
"""Seconds within which whatever a node goes on saying is told again, several times."""


class _Absence(NamedTuple):
    held: Held
    since: float


class _Words:
    """Since when nodes say of interfaces that they are unplugged; what is told no more is forgotten."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, tuple[float, float]] = OrderedDict()  # first and last, in the order of the last

    def take(self, vmi_uuid: str, now: float) -> float:
        """It is said now: returns since when it is, without a pause."""
        while self._told and next(iter(self._told.values()))[1] < now - _TOLD_WITHIN:
            self._told.popitem(last=False)
        since, _ = self._told.pop(vmi_uuid, (now, now))
        self._told[vmi_uuid] = (since, now)
        return since


class StaticPods:
    """`settle_later` has a pod's place settled after so many seconds; `clock` tells seconds.

    `plugged` tells whether a port of a machine may be plugged: if none is, nobody is waited for.
    """

    def __init__(
        self, *, settle_later: Callable[[str, float], None], plugged: Plugged, clock: Callable[[], float]
    ) -> None:
        self._settle_later = settle_later
        self._plugged = plugged
        self._clock = clock
        self._absences: dict[str, _Absence] = {}
        self._places: dict[str, str] = {}  # by the interfaces of those that are away
        self._words = _Words()

    def awaits(self, key: str, record: PodRecord) -> bool:
        """Whether the place is left as it is, since its mirror may come back; it is settled again in time."""
        held = record.held
        if held is None or not self._is_missed(held, record):
            self.leave(key)
            return False
        absence = self._absences.get(key)
        if absence is None:
            absence = self._note(key, held)
        left = absence.since + PATIENCE - self._clock()
        if left <= 0:
            return False
        self._settle_later(key, left)
        return True

    def unplugged(self, vmi_uuid: str) -> str | None:
        """The node says so of this interface: returns the place of the pod that has ended by that."""
        now = self._clock()
        said_since = self._words.take(vmi_uuid, now)
        key = self._places.get(vmi_uuid)
        if key is None:
            return None
        away_since = self._absences[key].since
        return key if said_since > away_since and now >= away_since + _REPORTS_LAG else None

    def leave(self, key: str) -> None:
        """Nobody is waited for at this place any more."""
        absence = self._absences.pop(key, None)
        for interface in absence.held.interfaces if absence else ():
            del self._places[interface]

    def _is_missed(self, held: Held, record: PodRecord) -> bool:
        return record.pod is None and held.has_mirror_pod and record.ended != held.uuid and self._plugged(held.uuid)

    def _note(self, key: str, held: Held) -> _Absence:
        absence = self._absences[key] = _Absence(held, self._clock())
        self._places.update(dict.fromkeys(held.interfaces, key))
        return absence
