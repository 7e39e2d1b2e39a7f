"""A thousand files at once, come, changed and gone, and a reader that leaves in the middle."""

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


def told_once(events: list[SourceEvent], kind: type[Applied | Gone]) -> bool:
    names = [event.object.name for event in events if isinstance(event, kind)]
    return len(names) == len(events) == len(set(names)) == COUNT


async def test_a_thousand_files_are_told_each_once(folder: Path, listen: Listen) -> None:
    write_all(folder, "net-a")
    async with listen() as events:
        listed = await events.listed()
        assert told_once(listed[:-1], Applied)
        await asyncio.to_thread(write_all, folder, "net-b")
        assert told_once(await events.all(), Applied)
        await asyncio.to_thread(shutil.move, folder / "0", folder / "moved")
        assert await events.all() == []
        for name in ("moved", *"123456789"):
            await asyncio.to_thread(shutil.rmtree, folder / name)
        assert told_once(await events.all(), Gone)


async def test_a_thousand_files_that_come_while_we_look_are_told_each_once(folder: Path, listen: Listen) -> None:
    async with listen() as events:
        await events.listed()
        writing = asyncio.create_task(asyncio.to_thread(write_all, folder, "net-a"))
        told = [await events.next() for _ in range(COUNT)]
        await writing
        assert told_once(told, Applied)
        assert await events.all() == []


async def test_leaving_in_the_middle_leaves_no_thread_behind(folder: Path, listen: Listen) -> None:
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
