"""Static pods whose mirrors are away: they run on, so what they were given stays, for a while.

What a cluster shows of a static pod is a mirror. Anybody may delete that; kubelet then makes another one, within a
minute or so, and the pod never notices. It does notice if its list goes, or if its addresses are given to others. So a
mirror that goes without word that the sandbox has ended is waited for; what kubelet ended in order is freed as soon as
the node says that the ports are unplugged.
"""

from collections.abc import Callable
from typing import NamedTuple

from manager.controller.pod_writer import Plugged
from manager.controller.record import Held, PodRecord

PATIENCE = 300.0
"""Seconds for which a mirror is waited for: kubelet looks after its mirrors about once a minute."""

_REPORTS_LAG = 30.0
"""Seconds after which what a node reports is no older than the end of the mirror."""


class _Absence(NamedTuple):
    held: Held
    since: float


class Mirrors:
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
        key = self._places.get(vmi_uuid)
        if key is None or self._clock() < self._absences[key].since + _REPORTS_LAG:
            return None
        return key

    def leave(self, key: str) -> None:
        """Nobody is waited for at this place any more."""
        absence = self._absences.pop(key, None)
        for interface in absence.held.interfaces if absence else ():
            del self._places[interface]

    def _is_missed(self, held: Held, record: PodRecord) -> bool:
        return record.pod is None and held.is_mirrored and record.ended != held.uuid and self._plugged(held.uuid)

    def _note(self, key: str, held: Held) -> _Absence:
        absence = self._absences[key] = _Absence(held, self._clock())
        self._places.update(dict.fromkeys(held.interfaces, key))
        return absence
