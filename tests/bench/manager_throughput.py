"""Benchmark of the manager on the embedded store: throughput, latency of one pod, and memory.

Everything except the source is real: mapping, addresses, one write and one event per pod. The source generates pods as
fast as the manager consumes them. The manager is a separate process, so that its memory can be measured.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from contrail_config.embedded.store import SqliteStore
from contrail_config.store import ChangeType, WatchStart
from manager.configuration import ManagerConfiguration
from manager.manager import Manager
from manager.source import Applied, Gone, Listed, Pod, SourceEvent
from tests.bench.process_timing import summary
from tests.support.pods import make_nad, make_pod

PODS = 10_000
NETWORKS = "net-a,net-b"  # three interfaces, one of them dual-stack
SINGLE_PODS = 300


def main() -> dict[str, Any]:
    """Runs the benchmark in a new process and returns the results."""
    command = [sys.executable, "-m", "tests.bench.manager_throughput"]
    measured: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return measured


class BenchSource:
    """Source of two networks and of the events passed to `send`."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Callable[[], AsyncIterator[SourceEvent]]] = asyncio.Queue()

    def send(self, events: Callable[[], AsyncIterator[SourceEvent]]) -> None:
        """Queues events for the manager, which are generated as it consumes them."""
        self._queue.put_nowait(events)

    async def taken(self) -> None:
        """Waits until the manager has consumed all queued events."""
        await self._queue.join()

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[SourceEvent]]:
        """Yields the queued events."""
        yield self._stream()

    async def _stream(self) -> AsyncIterator[SourceEvent]:
        yield Applied(make_nad("net-a", cidr="10.64.0.0/14"))
        yield Applied(make_nad("net-b", cidr="10.128.0.0/14,fd00:128::/64"))
        while True:
            events = await self._queue.get()
            async for event in events():
                yield event
            self._queue.task_done()


async def measure(directory: Path) -> dict[str, Any]:
    """Measures pods written in bulk and one by one, a restart on the written store, and the deletion of all pods."""
    path, pods = directory / "config.db", [_pod(number) for number in range(PODS)]
    before = _rss_mib()
    async with _managed(path) as (source, store):
        written = await _timed(store, lambda: source.send(_applied(pods)), ChangeType.ADDED)
        rss = _rss_mib()
        source.send(_listed)
        latencies = [await _latency(source, store, number) for number in range(SINGLE_PODS)]
    restart_started = time.perf_counter()
    async with _managed(path) as (source, store):
        source.send(_applied(pods))
        source.send(_listed)
        await source.taken()
        restarted = time.perf_counter() - restart_started
        freed = await _timed(store, lambda: source.send(_gone(pods)), ChangeType.DELETED)
    return {
        "pods of 3 interfaces": {
            "written_per_s": round(PODS / written),
            "freed_per_s": round(PODS / freed),
            "taken_over_per_s": round(PODS / restarted),
        },
        "one pod, event to written": summary(latencies),
        f"memory with {PODS} pods": {"rss_mib": round(rss), "kib_per_pod": round((rss - before) * 1024 / PODS, 1)},
    }


@asynccontextmanager
async def _managed(path: Path) -> AsyncIterator[tuple[BenchSource, SqliteStore]]:
    store, source = await SqliteStore.open(path), BenchSource()
    manager = Manager(
        ManagerConfiguration(),
        source=source,
        store=store,
        event_log=store,
        registry=CollectorRegistry(),
        is_plugged=lambda _uuid: False,
    )
    task = asyncio.create_task(manager.run())
    try:
        yield source, store
    finally:
        task.cancel()
        await asyncio.wait([task])
        await store.close()


async def _timed(store: SqliteStore, start: Callable[[], None], kind: ChangeType) -> float:
    """Seconds until PODS changes of this type were received."""
    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        started, left = time.perf_counter(), PODS
        start()
        async for change in changes:
            left -= change.type is kind
            if not left:
                break
        return time.perf_counter() - started


async def _latency(source: BenchSource, store: SqliteStore, number: int) -> float:
    """Seconds from a pod's event until its virtual machine is received."""
    pod = _pod(PODS + number)
    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        started = time.perf_counter()
        source.send(_applied([pod]))
        await anext(changes)
        return time.perf_counter() - started


def _applied(pods: list[Pod]) -> Callable[[], AsyncIterator[SourceEvent]]:
    async def events() -> AsyncIterator[SourceEvent]:
        for pod in pods:
            yield Applied(pod)

    return events


def _gone(pods: list[Pod]) -> Callable[[], AsyncIterator[SourceEvent]]:
    async def events() -> AsyncIterator[SourceEvent]:
        for pod in pods:
            yield Gone(pod)

    return events


async def _listed() -> AsyncIterator[SourceEvent]:
    yield Listed(complete=False)


def _pod(number: int) -> Pod:
    return make_pod(f"pod-{number}", networks=NETWORKS, uid=str(uuid.UUID(int=number + 1)))


def _rss_mib() -> float:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        sys.stdout.write(json.dumps(asyncio.run(measure(Path(temporary)))) + "\n")
