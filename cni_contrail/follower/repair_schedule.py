"""When each network is audited after a notification: at once, and with back-off if another program keeps changing it.

The first audit is at once. After one that repaired something the next waits 1 s, then 2 s and so on up to 30 s, until
the network has been left alone for a minute. After one that found nothing the next waits 1 s: notifications may be of
changes that are none of ours. Pure: the clock is the caller's.
"""

from __future__ import annotations

from collections.abc import Collection

from cni_contrail.drift.possible_drift import NO_DRIFT, PossibleDrift
from cni_contrail.link.named_tuple import NamedTuple

LONGEST_PAUSE = 30.0  # seconds
LOST_PORT_DELAY = 2.0
"""Seconds after which a deleted port counts: a DEL deletes it, and shortly afterwards it is no longer desired."""

_FIRST_PAUSE = 1.0
_QUIET = 60.0
_MANY = 4  # repairs in a row that make a fight


class Fight(NamedTuple):
    """Another program keeps changing a network: repairs in a row, what is repaired, by whom it is changed."""

    repairs: int
    objects: frozenset[str]
    programs: frozenset[str]
    pause: float

    def __str__(self) -> str:
        who = f"another program ({', '.join(sorted(self.programs))})" if self.programs else "another program"
        what = ", ".join(sorted(self.objects))
        return f"{who} keeps changing it ({what}): repaired {self.repairs} times in a row, now every {self.pause:g} s"


class _History(NamedTuple):
    """Repairs of one network in a row, and when the next audit may be."""

    repairs: int
    objects: frozenset[str]
    programs: frozenset[str]
    last: float
    not_before: float

    def pause(self) -> float:
        return min(_FIRST_PAUSE * 2.0 ** min(self.repairs - 1, 10), LONGEST_PAUSE)


class RepairSchedule:
    """Networks by their numbers; times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._due: dict[int, float] = {}
        self._found: dict[int, PossibleDrift] = {}
        self._history: dict[int, _History] = {}

    def note(self, vni: int, drift: PossibleDrift, now: float) -> None:
        """Schedules an audit of a network that may have drifted."""
        if not drift.objects and not drift.lost_ports:
            return
        history = self._history.get(vni)
        earliest = now if drift.objects else now + LOST_PORT_DELAY
        due = max(earliest, history.not_before) if history is not None else earliest
        self._due[vni] = min(due, self._due.get(vni, due))
        self._found[vni] = self._found.get(vni, NO_DRIFT).plus(drift)

    def next_due(self) -> float | None:
        """Returns the time of the next audit, None without any."""
        return min(self._due.values(), default=None)

    def take_due(self, now: float) -> dict[int, PossibleDrift]:
        """Returns the networks to audit now, with what may have drifted, and takes them off the schedule."""
        due = [vni for vni, time in self._due.items() if time <= now]
        for vni in due:
            del self._due[vni]
        return {vni: self._found.pop(vni) for vni in due}

    def audited(self, vni: int, drift: PossibleDrift, now: float, *, changes: int) -> None:
        """Notes an audit of a network that was due, and how much it repaired."""
        history = self._history.get(vni)
        if history is None or now - history.last > _QUIET:
            history = _History(0, frozenset(), frozenset(), now, now)
        counts = changes > 0 and bool(drift.objects)  # what is left of a deleted port is no other program's change
        if counts:
            objects, programs = history.objects | drift.objects, history.programs | drift.programs
            history = _History(history.repairs + 1, objects, programs, now, now)
        # A fight goes on meanwhile if pods change, although what is repaired then does not count.
        pause = history.pause() if changes and history.repairs else _FIRST_PAUSE
        self._history[vni] = history._replace(not_before=max(history.not_before, now + pause))

    def clear(self) -> frozenset[int]:
        """Takes all networks off the schedule, since all are audited now; returns those with deleted ports."""
        with_lost_ports = frozenset(vni for vni, drift in self._found.items() if drift.lost_ports)
        self._due.clear()
        self._found.clear()
        return with_lost_ports

    def fights(self, now: float, networks: Collection[int]) -> dict[int, Fight]:
        """Returns the fights about these networks; forgets networks that have been left alone."""
        self._history = {
            vni: each for vni, each in self._history.items() if now - max(each.last, each.not_before) <= _QUIET
        }
        return {
            vni: Fight(each.repairs, each.objects, each.programs, each.pause())
            for vni, each in self._history.items()
            if each.repairs >= _MANY and vni in networks
        }
