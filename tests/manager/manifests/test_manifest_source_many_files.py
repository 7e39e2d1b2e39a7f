"""A thousand files that are added, changed and removed at once, and a consumer that leaves early."""

import asyncio
import shutil
import threading
from pathlib import Path

from manager.source import Applied, Gone, SourceEvent
from tests.manager.manifests.conftest import Listen, pod

COUNT = 1000


def write_all(folder: Path, networks: str) -> None:
    for number in range(COUNT):
        path = folder / f"{number % 10}" / f"pod-{number}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(pod(f"pod-{number}", networks=networks))


def delivered_once(events: list[SourceEvent], kind: type[Applied | Gone]) -> bool:
    names = [event.object.name for event in events if isinstance(event, kind)]
    return len(names) == len(events) == len(set(names)) == COUNT


async def test_each_of_a_thousand_files_is_delivered_once(folder: Path, listen: Listen) -> None:
    write_all(folder, "net-a")
    async with listen() as events:
        listed = await events.listed()
        assert delivered_once(listed[:-1], Applied)
        await asyncio.to_thread(write_all, folder, "net-b")
        assert delivered_once(await events.all(), Applied)
        await asyncio.to_thread(shutil.move, folder / "0", folder / "moved")
        assert await events.all() == []
        for name in ("moved", *"123456789"):
            await asyncio.to_thread(shutil.rmtree, folder / name)
        assert delivered_once(await events.all(), Gone)


async def test_files_written_during_scans_are_delivered_once(folder: Path, listen: Listen) -> None:
    async with listen() as events:
        await events.listed()
        writing = asyncio.create_task(asyncio.to_thread(write_all, folder, "net-a"))
        received = [await events.next() for _ in range(COUNT)]
        await writing
        assert delivered_once(received, Applied)
        assert await events.all() == []


async def test_leaving_early_stops_the_thread(folder: Path, listen: Listen) -> None:
    write_all(folder, "net-a")
    before = threading.active_count()
    async with listen() as events:
        await events.next()
    async with listen() as events:
        await events.listed()
        waiting = asyncio.create_task(events.next())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    for thread in threading.enumerate():
        if thread.name.startswith("manifests"):
            thread.join(5)
    assert threading.active_count() <= before
