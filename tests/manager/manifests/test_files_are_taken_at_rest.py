"""A file is taken once it has not changed for a while; the clock of these tests is their own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from manager.manifests.debounce import Debounce
from manager.manifests.errors import FileChangedError
from manager.manifests.folder_scan import Signature, read, scan
from manager.manifests.inventory import FolderState
from manager.manifests.manifest_folder import ManifestFolder
from tests.manager.manifests.conftest import pod

QUIET_PERIOD = 1.0


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reader(folder: Path, clock: Clock) -> ManifestFolder:
    return ManifestFolder(str(folder), node="worker-1", quiet_period=QUIET_PERIOD, rescan=10.0, clock=clock)


Names = Callable[[FolderState | None], set[str]]


def names(view: FolderState | None) -> set[str]:
    assert view is not None
    return {name for _, _, name in view.objects}


def test_an_empty_folder_has_nothing_to_wait_for(reader: ManifestFolder) -> None:
    view = reader.refresh()
    assert names(view) == set()
    assert view is not None
    assert view.complete
    assert reader.refresh() is None
    assert reader.wait() == 10.0


def test_a_new_file_is_taken_after_the_time_to_settle(folder: Path, reader: ManifestFolder, clock: Clock) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    assert reader.refresh() is None
    assert reader.wait() == pytest.approx(QUIET_PERIOD)
    clock.advance(0.9)
    assert reader.refresh() is None
    assert reader.wait() == pytest.approx(0.1)
    clock.advance(0.1)
    assert names(reader.refresh()) == {"web"}


def test_a_file_that_grows_is_not_taken_half_written(folder: Path, reader: ManifestFolder, clock: Clock) -> None:
    text = pod("web") + pod("db")
    for end in range(len(text) // 2, len(text), 40):
        (folder / "pods.yaml").write_text(text[:end])
        assert reader.refresh() is None
        clock.advance(0.9)
    (folder / "pods.yaml").write_text(text)
    assert reader.refresh() is None
    clock.advance(QUIET_PERIOD)
    assert names(reader.refresh()) == {"web", "db"}


def test_a_file_that_goes_and_comes_back_in_time_was_never_away(
    folder: Path, reader: ManifestFolder, clock: Clock
) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    reader.refresh()
    clock.advance(QUIET_PERIOD)
    reader.refresh()
    (folder / "pod.yaml").rename(folder / "pod.yaml~")
    assert reader.refresh() is None
    clock.advance(0.5)
    (folder / "pod.yaml").write_text(pod("web"))
    assert reader.refresh() is None
    clock.advance(QUIET_PERIOD)
    assert names(reader.refresh()) == {"web"}


def test_files_that_change_one_after_the_other_are_taken_together(
    folder: Path, reader: ManifestFolder, clock: Clock
) -> None:
    (folder / "a.yaml").write_text(pod("web"))
    reader.refresh()
    clock.advance(QUIET_PERIOD)
    reader.refresh()
    (folder / "a.yaml").unlink()
    reader.refresh()
    clock.advance(0.9)
    (folder / "b.yaml").write_text(pod("web"))
    reader.refresh()
    clock.advance(0.9)
    assert reader.refresh() is None
    clock.advance(0.1)
    assert names(reader.refresh()) == {"web"}


def test_a_file_that_never_comes_to_rest_holds_others_up_for_ten_times_as_long(
    folder: Path, reader: ManifestFolder, clock: Clock
) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    seconds = 0.0
    view = None
    while view is None:
        (folder / "restless.yaml").write_text(f"# {seconds}")
        view = reader.refresh()
        clock.advance(0.5)
        seconds += 0.5
    assert names(view) == {"web"}
    assert not view.complete
    assert seconds == pytest.approx(10 * QUIET_PERIOD, abs=1.0)


def test_a_file_that_is_gone_again_before_it_was_taken_leaves_nothing(folder: Path, reader: ManifestFolder) -> None:
    reader.refresh()
    (folder / "pod.yaml").write_text(pod("web"))
    assert reader.refresh() is None
    (folder / "pod.yaml").unlink()
    assert reader.refresh() is None
    assert reader.wait() == 10.0


def test_a_file_that_changes_between_list_and_read_is_left_for_later(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "pod.yaml"
    path.write_text(pod("web"))
    reader = ManifestFolder(str(folder), node="worker-1", quiet_period=QUIET_PERIOD, rescan=10.0, clock=clock)
    reader.refresh()
    clock.advance(QUIET_PERIOD)

    def scan_then_change(folder: str) -> object:
        snapshot = scan(folder)
        path.write_text(pod("db"))
        return snapshot

    with monkeypatch.context() as patched:
        patched.setattr("manager.manifests.manifest_folder.scan", scan_then_change)
        assert names(reader.refresh()) == set()
    assert reader.refresh() is None
    clock.advance(QUIET_PERIOD)
    assert names(reader.refresh()) == {"db"}


def test_a_file_that_changes_while_it_is_read_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    expected = scan(str(folder)).files["pod.yaml"]
    states = iter([expected, expected._replace(size=expected.size + 1)])
    monkeypatch.setattr("manager.manifests.folder_scan._signature", lambda _: next(states))
    with pytest.raises(FileChangedError, match="changed while it was read"):
        read(str(folder), "pod.yaml", expected)


def test_a_dropped_file_that_is_gone_meanwhile_is_due_as_gone(clock: Clock) -> None:
    settling = Debounce(0.0, clock)
    state = {"a.yaml": Signature(1, 2, 3, 4, 5)}
    assert settling.due(state) == state
    settling.accept("a.yaml")
    settling.invalidate("a.yaml")
    assert settling.due({}) == {"a.yaml": None}
