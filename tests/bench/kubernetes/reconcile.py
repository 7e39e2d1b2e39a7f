"""Benchmark of the first start and the restart of a manager in a large cluster.

At a restart, the case that operators see, the manager lists all pods and virtual machines, compares them and writes
nothing. The first start is bounded by its writes, two per pod and one per address block, which a real server processes
far more slowly than the scripted one. Afterwards all pods are listed from the manager's API, page by page.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.agent_vm_cfg import processor_seconds
from tests.bench.kubernetes.processes import (
    ScriptedApi,
    knows_all,
    peak_mib,
    pid_of,
    reset_peak_mib,
    scripted_api,
    scripted_manager,
    until,
)
from tests.support.cluster_processes import ManagerProcess

PODS = 150_000
QUICK_PODS = 1_000


def main(*, quick: bool = False) -> dict[str, Any]:
    """Runs the benchmark and returns the results."""
    pods = QUICK_PODS if quick else PODS
    with tempfile.TemporaryDirectory() as temporary, scripted_api(pods=pods) as api:
        return {
            f"{pods} pods x 3": {
                "first start, all written": _first_start(Path(temporary), api, pods),
                **_restart(Path(temporary), api),
            }
        }


def _first_start(work: Path, api: ScriptedApi, pods: int) -> dict[str, Any]:
    started = time.perf_counter()
    with scripted_manager(work, api) as manager:
        until(lambda: api.written("PATCH pods") == pods, manager=manager)
        return _resources_since(started, pid_of(manager)) | {"writes_per_pod": round(api.writes() / pods, 2)}


def _restart(work: Path, api: ScriptedApi) -> dict[str, dict[str, Any]]:
    before = api.writes()
    started = time.perf_counter()
    with scripted_manager(work, api) as manager:
        until(lambda: knows_all(manager), manager=manager)
        restart = _resources_since(started, pid_of(manager)) | {"writes": api.writes() - before}
        return {"restart, all there": restart, "GET /v1/pods, all pages": _list(manager)}


def _list(manager: ManagerProcess) -> dict[str, float]:
    pid, started = pid_of(manager), time.perf_counter()
    before = reset_peak_mib(pid)
    pods = len(manager.items("pods"))
    seconds = round(time.perf_counter() - started, 1)
    return {"pods": pods, "seconds": seconds, "more_mib": peak_mib(pid) - before}


def _resources_since(started: float, pid: int) -> dict[str, float]:
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "processor_s": round(processor_seconds(pid), 1),
        "peak_mib": peak_mib(pid),
    }
