"""How many pods a second the manager writes into the embedded store, how soon one of them, and in what memory.

Everything is real but the source, which makes its pods as fast as they are taken: mapping, addresses, one write and one
event for each. The manager has a process of its own, so that its memory is its own.
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
NETWORKS = "net-a,net-b"  # so three interfaces, one of them with two families
SINGLE_PODS = 300


def main() -> dict[str, Any]:
    """Measures in a process of its own and returns the numbers."""
    command = [sys.executable, "-m", "tests.bench.manager_throughput"]
    measured: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return measured


class BenchSource:
    """Two networks and any number of pods, told by whatever `tell` is given."""

    def __init__(self) -> None:
        self._told: asyncio.Queue[Callable[[], AsyncIterator[SourceEvent]]] = asyncio.Queue()

    def tell(self, events: Callable[[], AsyncIterator[SourceEvent]]) -> None:
        """Has the manager take the events, one by one, as it asks for them."""
        self._told.put_nowait(events)

    async def taken(self) -> None:
        """Returns when the manager has worked off all that was told, and asks for more."""
        await self._told.join()

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[SourceEvent]]:
        """All that is told."""
        yield self._stream()

    async def _stream(self) -> AsyncIterator[SourceEvent]:
        yield Applied(make_nad("net-a", cidr="10.64.0.0/14"))
        yield Applied(make_nad("net-b", cidr="10.128.0.0/14,fd00:128::/64"))
        while True:
            events = await self._told.get()
            async for event in events():
                yield event
            self._told.task_done()


async def measure(directory: Path) -> dict[str, Any]:
    """Writes pods, writes some one by one, starts anew on what is written, and frees it all."""
    path, pods = directory / "config.db", [_pod(number) for number in range(PODS)]
    before = _rss_mib()
    async with _managed(path) as (source, store):
        written = await _timed(store, lambda: source.tell(_applied(pods)), ChangeType.ADDED)
        rss = _rss_mib()
        source.tell(_listed)
        latencies = [await _latency(source, store, number) for number in range(SINGLE_PODS)]
    restart_begun = time.perf_counter()
    async with _managed(path) as (source, store):
        source.tell(_applied(pods))
        source.tell(_listed)
        await source.taken()
        restarted = time.perf_counter() - restart_begun
        freed = await _timed(store, lambda: source.tell(_gone(pods)), ChangeType.DELETED)
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


async def _timed(store: SqliteStore, begin: Callable[[], None], kind: ChangeType) -> float:
    """Seconds until as many changes of this kind were seen as there are pods."""
    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        begun, left = time.perf_counter(), PODS
        begin()
        async for change in changes:
            left -= change.type is kind
            if not left:
                break
        return time.perf_counter() - begun


async def _latency(source: BenchSource, store: SqliteStore, number: int) -> float:
    """Seconds from a pod's event until its machine is seen."""
    pod = _pod(PODS + number)
    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        begun = time.perf_counter()
        source.tell(_applied([pod]))
        await anext(changes)
        return time.perf_counter() - begun


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
