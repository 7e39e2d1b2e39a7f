"""The folder is scanned at once after a change, not after reads, and periodically without an event."""

import errno
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from manager.manifests.folder_watch import FolderWatch
from tests.manager.manifests.conftest import Listen, pod, summary

LONG = 30.0


@pytest.fixture
def watch(folder: Path) -> Iterator[FolderWatch]:
    watch = FolderWatch(str(folder))
    watch.open()
    yield watch
    watch.close()


def seconds_of_wait(watch: FolderWatch, timeout: float) -> float:
    started = time.monotonic()
    watch.wait(timeout, 0.05)
    return time.monotonic() - started


def test_a_change_before_the_wait_is_noticed(folder: Path, watch: FolderWatch) -> None:
    (folder / "pod.yaml").write_text("")
    assert seconds_of_wait(watch, LONG) < LONG / 2


def test_a_change_in_a_new_subfolder_is_noticed(folder: Path, watch: FolderWatch) -> None:
    (folder / "a").mkdir()
    watch.wait(LONG, 0.05)
    (folder / "a/pod.yaml").write_text("")
    assert seconds_of_wait(watch, LONG) < LONG / 2


def test_reading_causes_no_event(folder: Path, watch: FolderWatch) -> None:
    (folder / "pod.yaml").write_text("")
    watch.wait(LONG, 0.05)
    (folder / "pod.yaml").read_text()
    list(folder.iterdir())
    assert seconds_of_wait(watch, 0.2) >= 0.2


def test_stop_ends_the_current_and_later_waits(watch: FolderWatch) -> None:
    threading.Timer(0.05, watch.stop).start()
    assert seconds_of_wait(watch, LONG) < LONG / 2
    assert seconds_of_wait(watch, LONG) < LONG / 2


def test_a_recreated_folder_is_watched_again(folder: Path, watch: FolderWatch) -> None:
    folder.rmdir()
    watch.wait(0.01, 0.05)
    watch.wait(0.01, 0.05)
    folder.mkdir()
    assert seconds_of_wait(watch, LONG) < LONG / 2
    (folder / "pod.yaml").write_text("")
    assert seconds_of_wait(watch, LONG) < LONG / 2


async def test_without_watches_the_folder_is_polled(
    folder: Path, listen: Listen, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_watches_left(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("manager.manifests.folder_watch.RustNotify", no_watches_left)
    monkeypatch.setattr("manager.manifests.folder_watch._POLL", 0.05)
    async with listen() as events:
        await events.listed()
        assert "polling it every second: [Errno 28] No space left on device" in caplog.text
        (folder / "pod.yaml").write_text(pod("web"))
        assert summary([await events.next()]) == ["Applied Pod web"]


async def test_a_failed_watch_is_replaced_by_polling(
    folder: Path, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FailingWatch:
        def __init__(self, *_: object) -> None:
            pass

        def watch(self, *_: object) -> None:
            raise OSError(errno.EIO, "Input/output error")

        def close(self) -> None:
            pass

    monkeypatch.setattr("manager.manifests.folder_watch.RustNotify", FailingWatch)
    monkeypatch.setattr("manager.manifests.folder_watch._POLL", 0.05)
    async with listen() as events:
        await events.listed()
        (folder / "pod.yaml").write_text(pod("web"))
        assert summary([await events.next()]) == ["Applied Pod web"]


async def test_a_change_without_an_event_is_found_by_the_next_rescan(
    folder: Path, tmp_path: Path, listen: Listen
) -> None:
    (tmp_path / "elsewhere.yaml").write_text(pod("web"))
    (folder / "link.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    async with listen(rescan=0.1) as events:
        await events.listed()
        (tmp_path / "elsewhere.yaml").write_text(pod("db"))
        assert summary([await events.next(), await events.next()]) == ["Gone Pod web", "Applied Pod db"]
