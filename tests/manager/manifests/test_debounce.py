"""A file is read once it has been stable for the quiet period; the tests control the clock."""

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
    """A clock that tests advance."""

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


def names(state: FolderState | None) -> set[str]:
    assert state is not None
    return {name for _, _, name in state.objects}


def test_an_empty_folder_is_complete_at_once(reader: ManifestFolder) -> None:
    state = reader.refresh()
    assert names(state) == set()
    assert state is not None
    assert state.complete
    assert reader.refresh() is None
    assert reader.wait() == 10.0


def test_a_new_file_is_read_after_the_quiet_period(folder: Path, reader: ManifestFolder, clock: Clock) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    assert reader.refresh() is None
    assert reader.wait() == pytest.approx(QUIET_PERIOD)
    clock.advance(0.9)
    assert reader.refresh() is None
    assert reader.wait() == pytest.approx(0.1)
    clock.advance(0.1)
    assert names(reader.refresh()) == {"web"}


def test_a_growing_file_is_not_read_half_written(folder: Path, reader: ManifestFolder, clock: Clock) -> None:
    text = pod("web") + pod("db")
    for end in range(len(text) // 2, len(text), 40):
        (folder / "pods.yaml").write_text(text[:end])
        assert reader.refresh() is None
        clock.advance(0.9)
    (folder / "pods.yaml").write_text(text)
    assert reader.refresh() is None
    clock.advance(QUIET_PERIOD)
    assert names(reader.refresh()) == {"web", "db"}


def test_a_file_that_is_replaced_within_the_quiet_period_is_not_removed(
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


def test_files_that_change_in_sequence_are_read_together(folder: Path, reader: ManifestFolder, clock: Clock) -> None:
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


def test_a_file_that_is_never_stable_delays_others_for_ten_quiet_periods(
    folder: Path, reader: ManifestFolder, clock: Clock
) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    seconds = 0.0
    state = None
    while state is None:
        (folder / "restless.yaml").write_text(f"# {seconds}")
        state = reader.refresh()
        clock.advance(0.5)
        seconds += 0.5
    assert names(state) == {"web"}
    assert not state.complete
    assert seconds == pytest.approx(10 * QUIET_PERIOD, abs=1.0)


def test_a_file_that_is_removed_before_it_is_due_leaves_nothing(folder: Path, reader: ManifestFolder) -> None:
    reader.refresh()
    (folder / "pod.yaml").write_text(pod("web"))
    assert reader.refresh() is None
    (folder / "pod.yaml").unlink()
    assert reader.refresh() is None
    assert reader.wait() == 10.0


def test_a_file_that_changes_between_scan_and_read_is_read_later(
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


def test_an_invalidated_file_that_is_removed_is_due_as_removed(clock: Clock) -> None:
    debounce = Debounce(0.0, clock)
    state = {"a.yaml": Signature(1, 2, 3, 4, 5)}
    assert debounce.due(state) == state
    debounce.accept("a.yaml")
    debounce.invalidate("a.yaml")
    assert debounce.due({}) == {"a.yaml": None}
