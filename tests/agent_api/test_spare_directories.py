"""Spare directories: a new directory appears with all its files by one rename, or nothing changes."""

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_api.atomic_files import encode_file
from agent_api.ports.container import ContainerPort
from agent_api.ports.directory import PortDirectory
from agent_api.ports.table import PortTable
from agent_api.spare_directories import SpareDirectories
from tests.support.served_agent import until
from tests.support.stored_ports import container_port
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, left_interface

FILES = {"one": b"1", "two": b"2"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Holds the spare directories."""
    return tmp_path / "unfinished" / "vm"


@pytest.fixture
def spares(root: Path) -> SpareDirectories:
    spares = SpareDirectories(str(root))
    spares.clear()
    return spares


def content(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def test_a_directory_is_a_spare_one_with_all_files(spares: SpareDirectories, root: Path, tmp_path: Path) -> None:
    made_ahead = {path.stat().st_ino for path in root.iterdir()}
    assert spares.publish(str(tmp_path / "web"), FILES)
    assert content(tmp_path / "web") == FILES
    assert (tmp_path / "web").stat().st_ino in made_ahead


def test_without_a_spare_one_nothing_is_created_until_there_are_more(spares: SpareDirectories, tmp_path: Path) -> None:
    number = 0
    while spares.publish(str(tmp_path / str(number)), FILES):
        number += 1
    assert number > 0
    assert not (tmp_path / str(number)).exists()
    assert spares.make_one() is True
    assert spares.publish(str(tmp_path / str(number)), FILES)


def test_they_are_made_one_at_a_time_up_to_a_number(spares: SpareDirectories, root: Path, tmp_path: Path) -> None:
    number = len(list(root.iterdir()))
    assert spares.make_one() is False
    for name in ("a", "b"):
        assert spares.publish(str(tmp_path / name), FILES)
    assert [spares.make_one(), spares.make_one(), spares.make_one()] == [True, False, False]
    assert len(list(root.iterdir())) == number


def test_a_directory_that_has_come_meanwhile_keeps_its_files(
    spares: SpareDirectories, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "other").write_bytes(b"3")
    before = len(list(root.iterdir()))
    assert not spares.publish(str(tmp_path / "web"), FILES)
    assert content(tmp_path / "web") == {"other": b"3"}
    assert len(list(root.iterdir())) == before - 1, "the filled one is removed"


def test_a_missing_parent_or_removed_spare_ones_change_nothing(
    spares: SpareDirectories, root: Path, tmp_path: Path
) -> None:
    assert not spares.publish(str(tmp_path / "missing" / "web"), FILES)
    number = len(list(root.iterdir()))
    shutil.rmtree(root)
    for _ in range(number):
        assert not spares.publish(str(tmp_path / "web"), FILES)
        assert not (tmp_path / "web").exists()
    spares.make_one()
    assert spares.publish(str(tmp_path / "web"), FILES)


def test_a_file_that_cannot_be_written_is_an_error_and_nothing_is_left(
    spares: SpareDirectories, root: Path, tmp_path: Path
) -> None:
    before = len(list(root.iterdir()))
    with pytest.raises(OSError, match="File name too long") as caught:
        spares.publish(str(tmp_path / "web"), {"one": b"1", "x" * 256: b"2"})
    assert str(caught.value.filename).endswith("x" * 256)
    assert not (tmp_path / "web").exists()
    assert len(list(root.iterdir())) == before - 1


def test_what_a_killed_process_left_is_removed(root: Path) -> None:
    (root / "1").mkdir(parents=True)
    (root / "1" / "half").write_bytes(b"{")
    SpareDirectories(str(root)).clear()
    assert all(content(each) == {} for each in root.iterdir())


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that has a port's file of an earlier process, and no further file fits on it."""
    path = tmp_path / "ports"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=20", "tmpfs", path], check=True)
    (path / "unfinished" / "ports").mkdir(parents=True)
    (path / "vm" / "k8s__default__p1").mkdir(parents=True)
    (path / "vm" / "k8s__default__p1" / SAMPLE_VMI).write_bytes(encode_file(container_port()))
    with contextlib.suppress(OSError):
        for number in itertools.count():
            (path / f"ballast{number}").touch()
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


def test_ports_are_loaded_and_unplugged_on_a_full_disk(full_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OSError, match="No space left on device"):
        (full_disk / "more").mkdir()
    directory = PortDirectory(str(full_disk))
    (port,) = directory.load()
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        f"directories of port files cannot be made ahead: {full_disk}/unfinished/vm: No space left on device"
    ]
    directory.change(remove=[port])
    assert os.listdir(full_disk / "vm") == []


def test_ports_are_loaded_from_a_read_only_disk_with_spare_directories(full_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,nr_inodes=100", full_disk], check=True)
    PortDirectory(str(full_disk)).load()
    subprocess.run(["mount", "-o", "remount,ro", full_disk], check=True)
    assert len(PortDirectory(str(full_disk)).load()) == 1


def some_ports() -> list[ContainerPort]:
    return [container_port(left_interface(SAMPLE_VM, index).uuid) for index in range(3)]


def test_the_first_ports_of_a_pod_are_published_as_a_whole(tmp_path: Path) -> None:
    directory, ports = PortDirectory(str(tmp_path)), some_ports()
    directory.load()
    made_ahead = {path.stat().st_ino for path in (tmp_path / "unfinished" / "vm").iterdir()}
    directory.change(write=ports)
    assert Path(directory.path(ports[0])).parent.stat().st_ino in made_ahead
    assert sorted(PortDirectory(str(tmp_path)).load(), key=str) == sorted(ports, key=str)


async def test_they_are_made_again_while_nobody_waits(tmp_path: Path) -> None:
    table = PortTable(PortDirectory(str(tmp_path)))
    await table.load()
    root = tmp_path / "unfinished" / "vm"
    number = len(os.listdir(root))
    await table.plug(some_ports())
    assert len(os.listdir(root)) == number - 1
    await until(lambda: len(os.listdir(root)) == number)


def test_a_release_without_spare_directories_finds_only_files_where_it_removes_files(tmp_path: Path) -> None:
    directory = PortDirectory(str(tmp_path))
    directory.load()
    directory.change(write=some_ports())
    assert os.listdir(tmp_path / "unfinished" / "ports") == []
