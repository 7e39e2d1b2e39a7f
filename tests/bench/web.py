"""Benchmark of the web page: 10,000 pods of 100 networks on 20 nodes, in a browser.

The manager with its store is a process of its own, on a source that generates the pods. Times are those of the browser,
from the navigation until the picture is drawn; memory is that of the page's process, its garbage collected.
"""

import asyncio
import contextlib
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median
from typing import Any

from aiohttp import web
from playwright.sync_api import Browser, Page
from prometheus_client import CollectorRegistry

from contrail_config.embedded.store import SqliteStore
from manager.api.routes import api_routes
from manager.configuration import ManagerConfiguration
from manager.manager import Manager
from manager.source import Applied, Listed, Pod, SourceEvent
from manager.web.access import access_of
from manager.web.serving import served_routes
from tests.support.browser import opened_page, running_browser
from tests.support.pods import make_nad

NETWORKS, NODES, PODS = 100, 20, 10_000
QUICK_PODS = 500
RUNS = 5

_DEADLINE = 120.0

DRAWN = "() => document.querySelectorAll('.lanes .column').length > 0 && performance.now()"


def main(*, quick: bool = False) -> dict[str, Any]:
    """Serves the pods from a new process, and returns what a browser takes to show them."""
    pods = QUICK_PODS if quick else PODS
    command = [sys.executable, "-m", "tests.bench.web", str(pods)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            with running_browser() as browser:
                return {f"{pods} pods in {NETWORKS} networks": _measure(browser, url)}
        finally:
            server.terminate()


def _measure(browser: Browser, url: str) -> dict[str, float]:
    topology = [_drawn_after(browser, f"{url}/#/topology") for _ in range(RUNS)]
    with opened_page(browser, f"{url}/#/topology") as page:
        page.wait_for_function(DRAWN, timeout=60_000)
        shown = int(page.locator("#summary").inner_text().split()[2])
        found = page.evaluate("""async () => {
            const input = document.querySelector('input[name=q]');
            input.value = 'pod-77';
            const started = performance.now();
            input.dispatchEvent(new Event('input', { bubbles: true }));
            return performance.now() - started;
        }""")
        memory = _memory(browser, page)
    return {
        "pods": shown,
        "topology_drawn_s": round(median(topology), 2),
        "slowest_s": round(max(topology), 2),
        "search_ms": round(found),
        "page_mib": round(memory),
    }


def _drawn_after(browser: Browser, url: str) -> float:
    """Seconds from the navigation until the lanes are drawn."""
    with opened_page(browser, url) as page:
        return float(page.wait_for_function(DRAWN, timeout=60_000).json_value()) / 1000


def _memory(browser: Browser, page: Page) -> float:
    """MiB of the resident memory of the page's process that it shares with no other; the largest, of several."""
    page.context.new_cdp_session(page).send("HeapProfiler.collectGarbage")
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return max(_private_mib(process["id"]) for process in processes if process["type"] == "renderer")


def _private_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


async def serve(pods: int, directory: Path) -> None:
    """Serves the page and prints its address once all pods have their interfaces."""
    store = await SqliteStore.open(directory / "config.db")
    configuration = ManagerConfiguration()
    manager = Manager(
        configuration,
        source=_Source(pods),
        store=store,
        event_log=store,
        registry=CollectorRegistry(),
        is_plugged=lambda _uuid: False,
    )
    application = web.Application()
    api = api_routes(manager.queries, manager.change_log)
    application.add_routes(served_routes(configuration, access_of(configuration), api=api))
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    task = asyncio.create_task(manager.run())
    async with asyncio.timeout(_DEADLINE):
        while manager.readiness():  # noqa: ASYNC110 - it has no event for that
            await asyncio.sleep(0.1)
    await manager.idle()
    host, port = runner.addresses[0]
    print(f"http://{host}:{port}", flush=True)
    await task


class _Source:
    """All networks and pods at once, and nothing afterwards."""

    def __init__(self, pods: int) -> None:
        self._pods = pods

    @contextlib.asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[SourceEvent]]:
        """Yields the events."""
        yield self._stream()

    async def _stream(self) -> AsyncIterator[SourceEvent]:
        for number in range(NETWORKS):
            yield Applied(make_nad(f"net-{number}", cidr=f"10.{number + 64}.0.0/16"))
        for number in range(self._pods):
            yield Applied(_pod(number))
        yield Listed(complete=True)
        await asyncio.Event().wait()


def _pod(number: int) -> Pod:
    networks = ",".join(f"net-{(number * step) % NETWORKS}" for step in (1, 7)[: 1 + number % 2])
    return Pod(
        namespace="blue",
        name=f"pod-{number}",
        uid=str(uuid.UUID(int=number + 1)),
        node=f"node-{number % NODES}",
        annotations={"k8s.v1.cni.cncf.io/networks": networks},
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(serve(int(sys.argv[1]), Path(temporary)))
