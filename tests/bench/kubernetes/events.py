"""How many events of pods a second a manager takes from an API server, decoding included.

Two kinds of days: changes of pods that mean nothing for their networks, as most are (states of containers, heartbeats
of controllers), and whole lives of pods, each appearing, changing six times and going, with all that is written then.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.agent_vm_cfg import processor_seconds
from tests.bench.kubernetes.processes import ScriptedApi, knows_all, pid_of, scripted_api, scripted_manager, until
from tests.support.cluster_processes import ManagerProcess

PODS = 5_000  # that are there from the beginning
CHANGES = 200_000
LIVES = 10_000
SHORTER = 50  # so much less of all where it has to be quick

_CHANGES_OF_A_LIFE = 6
_LIVING = 2_000  # pods that live at one moment: more than a manager looks ahead, so that each is written


def main(*, quick: bool = False) -> dict[str, Any]:
    """Measures, and returns the numbers."""
    part = SHORTER if quick else 1
    pods = PODS // part
    with (
        tempfile.TemporaryDirectory() as work,
        scripted_api(pods=pods) as api,
        scripted_manager(Path(work), api) as manager,
    ):
        until(lambda: knows_all(manager) and api.written("PATCH pods") == pods, manager=manager)
        return {
            "changes that mean nothing": _changes(api, manager, pods, CHANGES // part),
            "lives of pods": _lives(api, manager, pods + 1, LIVES // part),
        }


def _changes(api: ScriptedApi, manager: ManagerProcess, pods: int, count: int) -> dict[str, float]:
    """Ends with one pod more: once that is written, all before it was taken."""
    events = [("MODIFIED", number % pods) for number in range(count)]
    written = api.written("POST virtualmachines")
    used, began = processor_seconds(pid_of(manager)), time.perf_counter()
    api.play([*events, ("ADDED", pods)])
    until(lambda: api.written("POST virtualmachines") > written, manager=manager)
    return _rate(len(events), began, processor_seconds(pid_of(manager)) - used)


def _lives(api: ScriptedApi, manager: ManagerProcess, first: int, count: int) -> dict[str, float]:
    """Each pod goes when it is written for certain: else the manager would save itself the work on some."""
    last, living = first + count, min(count, _LIVING)
    written = api.written("POST virtualmachines")
    used, began = processor_seconds(pid_of(manager)), time.perf_counter()
    api.play([event for number in range(first, first + living) for event in _coming(number)])
    until(lambda: api.written("POST virtualmachines") == written + living, manager=manager)
    api.play([event for number in range(first + living, last) for event in (*_coming(number), _going(number - living))])
    until(lambda: api.written("POST virtualmachines") == written + count, manager=manager)
    api.play([_going(number) for number in range(last - living, last)])
    until(lambda: api.written("DELETE virtualmachines") == count, manager=manager)
    seconds = time.perf_counter() - began
    events = count * (_CHANGES_OF_A_LIFE + 2)
    return _rate(events, began, processor_seconds(pid_of(manager)) - used) | {"lives_per_s": round(count / seconds)}


def _coming(number: int) -> list[tuple[str, int]]:
    return [("ADDED", number), *[("MODIFIED", number)] * _CHANGES_OF_A_LIFE]


def _going(number: int) -> tuple[str, int]:
    return "DELETED", number


def _rate(events: int, began: float, processor: float) -> dict[str, float]:
    return {
        "events_per_s": round(events / (time.perf_counter() - began)),
        "processor_us_each": round(processor / events * 1e6),
    }
