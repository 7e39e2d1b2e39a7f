"""Installed files are whole or not at all, whoever runs, removes or edits them, and however full the disk is."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cni_contrail.installer.errors import DirectoryGoneError, InstallError
from cni_contrail.installer.installed_file import InstalledFile
from tests.cni_contrail.conftest import SMALL_DISK


@pytest.fixture
def file(tmp_path: Path) -> InstalledFile:
    (tmp_path / "bin").mkdir()
    return InstalledFile(str(tmp_path), "/bin/plugin", 0o755)


def test_a_file_is_written_once(file: InstalledFile, tmp_path: Path) -> None:
    assert file.put(b"plugin")
    first = (tmp_path / "bin/plugin").stat()
    assert not file.put(b"plugin")
    assert (tmp_path / "bin/plugin").stat().st_ino == first.st_ino
    assert first.st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda path: path.unlink(), id="removed"),
        pytest.param(lambda path: path.write_bytes(b"plugon"), id="edited"),
        pytest.param(lambda path: path.write_bytes(b""), id="emptied"),
        pytest.param(lambda path: path.chmod(0o644), id="mode"),
    ],
)
def test_a_changed_file_is_put_back(file: InstalledFile, tmp_path: Path, change: Callable[[Path], object]) -> None:
    file.put(b"plugin")
    change(tmp_path / "bin/plugin")
    assert file.put(b"plugin")
    assert file.has(b"plugin")
    assert [path.name for path in (tmp_path / "bin").iterdir()] == ["plugin"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("elsewhere", path)], ids=["pipe", "link"])
def test_what_is_no_regular_file_is_replaced(
    file: InstalledFile, tmp_path: Path, make: Callable[[Path], object]
) -> None:
    make(tmp_path / "bin/plugin")
    assert file.put(b"plugin")
    assert file.has(b"plugin")


@pytest.fixture
def running(file: InstalledFile, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that executes the file, which the kernel then lets nobody write to."""
    file.put(Path("/bin/sleep").read_bytes())
    with subprocess.Popen([tmp_path / "bin/plugin", "60"]) as running:
        with pytest.raises(OSError, match="Text file busy"):
            (tmp_path / "bin/plugin").write_bytes(b"")
        yield running
        assert running.poll() is None
        running.kill()


@pytest.mark.usefixtures("running")
def test_a_file_that_is_running_is_replaced(file: InstalledFile) -> None:
    assert file.put(b"new")
    assert file.has(b"new")


@pytest.mark.usefixtures("running")
def test_a_file_that_is_running_is_removed(file: InstalledFile, tmp_path: Path) -> None:
    assert file.remove()
    assert list((tmp_path / "bin").iterdir()) == []


def test_on_a_full_disk_the_old_file_stays_until_there_is_space(small_disk: Path) -> None:
    file = InstalledFile(str(small_disk), "/plugin", 0o755)
    file.put(b"old" * 1000)
    (small_disk / "ballast").write_bytes(b"x" * (SMALL_DISK - 16 * 1024))
    with pytest.raises(InstallError, match=r"^/plugin: cannot write: No space left on device$"):
        file.put(b"new" * 10000)
    assert file.has(b"old" * 1000)
    assert sorted(path.name for path in small_disk.iterdir()) == ["ballast", "plugin"]
    (small_disk / "ballast").unlink()
    assert file.put(b"new" * 10000)


def test_what_a_killed_process_left_is_overwritten_and_removed(file: InstalledFile, tmp_path: Path) -> None:
    part = tmp_path / "bin/plugin.part"
    part.write_bytes(b"longer than the plugin")
    file.put(b"plugin")
    assert file.has(b"plugin")
    assert not part.exists()
    part.write_bytes(b"again")
    assert file.remove()
    assert list((tmp_path / "bin").iterdir()) == []
    assert not file.remove()


def test_what_others_remove_while_it_is_written_is_written_again(
    file: InstalledFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is still there, so the process need not end."""
    file.put(b"old")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _descriptor: (tmp_path / "bin/plugin.part").unlink())
        with pytest.raises(InstallError, match=r"^/bin/plugin: cannot write: No such file or directory$") as caught:
            file.put(b"new")
    assert not isinstance(caught.value, DirectoryGoneError)
    assert file.has(b"old")
    assert file.put(b"new")


def test_a_directory_in_place_of_the_file_is_an_error(file: InstalledFile, tmp_path: Path) -> None:
    (tmp_path / "bin/plugin/inside").mkdir(parents=True)
    with pytest.raises(InstallError, match=r"^/bin/plugin: cannot write: Is a directory$"):
        file.put(b"plugin")
    with pytest.raises(InstallError, match=r"^/bin/plugin: cannot remove: Is a directory$"):
        file.remove()


def test_a_mounted_directory_that_was_removed_and_created_again_needs_a_new_mount(tmp_path: Path) -> None:
    on_host, mounted = tmp_path / "net.d", tmp_path / "mounted"
    on_host.mkdir()
    mounted.mkdir()
    subprocess.run(["mount", "--bind", on_host, mounted], check=True)
    try:
        file = InstalledFile(str(tmp_path), "/mounted/list", 0o600)
        file.put(b"list")
        (on_host / "list").unlink()
        on_host.rmdir()
        on_host.mkdir()
        with pytest.raises(DirectoryGoneError, match=r"^/mounted: the directory does not exist$"):
            file.put(b"list")
    finally:
        subprocess.run(["umount", mounted], check=True)
