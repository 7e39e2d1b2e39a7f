"""Benchmark of pod events: number of events per second that a manager processes, including decoding.

Two loads: changes without effect on networks, as most are (container states, heartbeats of controllers), and complete
lives of pods with creation, six changes and deletion, including all resulting writes.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.agent_vm_cfg import processor_seconds
from tests.bench.kubernetes.processes import ScriptedApi, knows_all, pid_of, scripted_api, scripted_manager, until
from tests.support.cluster_processes import ManagerProcess

PODS = 5_000  # that exist at the start
CHANGES = 200_000
LIVES = 10_000
SHORTER = 50  # divisor of all numbers with `quick`

_CHANGES_OF_A_LIFE = 6
_LIVING = 2_000  # pods that exist at the same time: more than the manager's queue can skip, so that each is written


def main(*, quick: bool = False) -> dict[str, Any]:
    """Runs the benchmark and returns the results."""
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
    """Sends changes, then a new pod; once that is written, all earlier events are processed."""
    events = [("MODIFIED", number % pods) for number in range(count)]
    written = api.written("POST virtualmachines")
    used, started = processor_seconds(pid_of(manager)), time.perf_counter()
    api.play([*events, ("ADDED", pods)])
    until(lambda: api.written("POST virtualmachines") > written, manager=manager)
    return _rate(len(events), started, processor_seconds(pid_of(manager)) - used)


def _lives(api: ScriptedApi, manager: ManagerProcess, first: int, count: int) -> dict[str, float]:
    """Deletes each pod only after it was written, since the manager skips pods that are deleted before."""
    last, living = first + count, min(count, _LIVING)
    written = api.written("POST virtualmachines")
    used, started = processor_seconds(pid_of(manager)), time.perf_counter()
    api.play([event for number in range(first, first + living) for event in _created(number)])
    until(lambda: api.written("POST virtualmachines") == written + living, manager=manager)
    api.play(
        [event for number in range(first + living, last) for event in (*_created(number), _deleted(number - living))]
    )
    until(lambda: api.written("POST virtualmachines") == written + count, manager=manager)
    api.play([_deleted(number) for number in range(last - living, last)])
    until(lambda: api.written("DELETE virtualmachines") == count, manager=manager)
    seconds = time.perf_counter() - started
    events = count * (_CHANGES_OF_A_LIFE + 2)
    return _rate(events, started, processor_seconds(pid_of(manager)) - used) | {"lives_per_s": round(count / seconds)}


def _created(number: int) -> list[tuple[str, int]]:
    return [("ADDED", number), *[("MODIFIED", number)] * _CHANGES_OF_A_LIFE]


def _deleted(number: int) -> tuple[str, int]:
    return "DELETED", number


def _rate(events: int, started: float, processor: float) -> dict[str, float]:
    return {
        "events_per_s": round(events / (time.perf_counter() - started)),
        "processor_us_each": round(processor / events * 1e6),
    }
