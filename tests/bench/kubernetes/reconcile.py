"""How long a manager takes to know a large cluster: at its first start, when all has to be written, and at a restart.

The restart is what an operator meets: the manager lists all pods and all machines, compares them, and finds nothing to
write. The first start is bounded by its writes, two for each pod and one for each block of addresses, which a real
server takes far more slowly than the scripted one.
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
    scripted_api,
    scripted_manager,
    until,
)

PODS = 150_000
QUICK_PODS = 1_000


def main(*, quick: bool = False) -> dict[str, Any]:
    """Measures, and returns the numbers."""
    pods = QUICK_PODS if quick else PODS
    with tempfile.TemporaryDirectory() as temporary, scripted_api(pods=pods) as api:
        return {
            f"{pods} pods x 3": {
                "first start, all written": _first_start(Path(temporary), api, pods),
                "restart, all there": _restart(Path(temporary), api),
            }
        }


def _first_start(work: Path, api: ScriptedApi, pods: int) -> dict[str, Any]:
    began = time.perf_counter()
    with scripted_manager(work, api) as manager:
        until(lambda: api.written("PATCH pods") == pods, manager=manager)
        return _taken(began, pid_of(manager)) | {"writes_per_pod": round(api.writes() / pods, 2)}


def _restart(work: Path, api: ScriptedApi) -> dict[str, Any]:
    before = api.writes()
    began = time.perf_counter()
    with scripted_manager(work, api) as manager:
        until(lambda: knows_all(manager), manager=manager)
        return _taken(began, pid_of(manager)) | {"writes": api.writes() - before}


def _taken(began: float, pid: int) -> dict[str, float]:
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "processor_s": round(processor_seconds(pid), 1),
        "peak_mib": peak_mib(pid),
    }
