"""How long a manager takes to know a large cluster: at its first start, when all has to be written, and at a restart.

The restart is what an operator meets: the manager lists all pods and all machines, compares them, and finds nothing to
write. The first start is bounded by the writes, two for each pod and one for each block of addresses, which a real
server takes far more slowly than the scripted one.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.kubernetes.processes import ManagerProcess, ScriptedApi, manager_process, plain_kubeconfig, scripted_api
from tests.bench.kubernetes.processes import until

PODS = 150_000
QUICK_PODS = 2_000
DEADLINE = 900.0


def main(*, quick: bool = False) -> dict[str, Any]:
    """Measures, and returns the numbers."""
    pods = QUICK_PODS if quick else PODS
    with tempfile.TemporaryDirectory() as temporary, scripted_api(pods=pods) as api:
        return {
            f"{pods} pods x 3": {
                "first start, all written": _first_start(Path(temporary), api, pods),
                "restart, nothing to write": _restart(Path(temporary), api),
            }
        }


def _first_start(folder: Path, api: ScriptedApi, pods: int) -> dict[str, Any]:
    began = time.perf_counter()
    with manager_process(folder, kubeconfig=plain_kubeconfig(folder, api.url)) as manager:
        until(lambda: api.written().get("PATCH pods", 0) == pods, seconds=DEADLINE)
        seconds = time.perf_counter() - began
        return _result(manager, seconds) | {"writes_per_pod": _writes_per_pod(api.written(), pods)}


def _restart(folder: Path, api: ScriptedApi) -> dict[str, Any]:
    before = _writes(api.written())
    began = time.perf_counter()
    with manager_process(folder, kubeconfig=plain_kubeconfig(folder, api.url)) as manager:
        until(lambda: manager.is_ready, seconds=DEADLINE)
        return _result(manager, time.perf_counter() - began) | {"writes": _writes(api.written()) - before}


def _result(manager: ManagerProcess, seconds: float) -> dict[str, Any]:
    return {
        "seconds": round(seconds, 1),
        "processor_seconds": round(manager.processor_seconds, 1),
        "peak_mib": manager.peak_mib,
    }


def _writes_per_pod(written: dict[str, int], pods: int) -> float:
    return round(_writes(written) / pods, 2)


def _writes(written: dict[str, int]) -> int:
    """Writes, but for events and the lease."""
    return sum(count for what, count in written.items() if what.split()[1] not in ("events", "leases"))


if __name__ == "__main__":
    import json, sys
    print(json.dumps(main(quick="--quick" in sys.argv), indent=2))
