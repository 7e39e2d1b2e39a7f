"""Benchmark of the store on a Contrail API server: pods written per second, and a manager's restart.

The server is a double in a process of its own, with 20 ms for each request, as over a network. Its processor time is
that of a double in Python and says nothing of a real server.
"""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry

from contrail_config.vnc.client import VncAccess, VncClient, connect
from contrail_config.vnc.store import VncStore
from contrail_service.client_metrics import ClientMetrics
from tests.bench.contrail_server import INTERFACES, node_name
from tests.support.virtual_networks import start_pod

LATENCY = 0.02  # seconds
PARALLEL = 128  # as the manager
_REQUESTS = "bench_requests"


def main(*, quick: bool) -> dict[str, Any]:
    """Runs the benchmark; `quick`: with few pods."""
    written, stored = (100, 200) if quick else (2000, 20_000)
    return {
        f"pods of {INTERFACES} interfaces, {LATENCY * 1000:.0f} ms for each request": asyncio.run(_write(written)),
        f"restart on {stored} pods of {INTERFACES} interfaces": asyncio.run(_restart(stored)),
    }


async def _write(pods: int) -> dict[str, float]:
    registry = CollectorRegistry()
    observer = ClientMetrics(registry, requests=_REQUESTS, request_seconds="bench_seconds", watch_age="bench_age")
    with _server(pods=0) as url:
        async with connect(VncAccess((url,)), deadline=60, observer=observer) as client:
            store = await VncStore.open(client, cluster="k8s")
            (network,) = await store.networks()
            await asyncio.gather(*(start_pod(store, [network], f"first-{n}", node=node_name(n)) for n in range(20)))
            free = asyncio.Semaphore(PARALLEL)

            async def write(number: int) -> None:
                async with free:
                    await start_pod(store, [network] * INTERFACES, f"new-{number}", node=node_name(number))

            before, started, used = _requests(registry), time.perf_counter(), time.process_time()
            await asyncio.gather(*(write(number) for number in range(pods)))
            seconds, processor = time.perf_counter() - started, time.process_time() - used
            await store.close()
    return {
        "pods_per_s": round(pods / seconds, 1),
        "requests_per_pod": round((_requests(registry) - before) / pods, 2),
        "processor_ms_per_pod": round(1000 * processor / pods, 2),
    }


async def _restart(pods: int) -> dict[str, float]:
    with _server(pods=pods) as url:
        async with connect(VncAccess((url,)), deadline=60) as client:
            return await _read(client, pods)


async def _read(client: VncClient, pods: int) -> dict[str, float]:
    started = time.perf_counter()
    store = await VncStore.open(client, cluster="k8s")
    machines = list(await store.recover_virtual_machines())
    read = time.perf_counter()
    await store.repairs.repair()
    compared = time.perf_counter()
    await store.close()
    assert len(machines) == pods
    return {"read_s": round(read - started, 1), "compared_s": round(compared - read, 1)}


def _requests(registry: CollectorRegistry) -> float:
    return sum(
        sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == f"{_REQUESTS}_total" and sample.labels["method"] != "WATCH"
    )


@contextlib.contextmanager
def _server(*, pods: int) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.bench.contrail_server", str(LATENCY), str(pods)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
