"""Archive of a dump: readable by its owner only, never in place of another file, and whole or absent."""

import tarfile
from pathlib import Path

import pytest

from contrailctl.errors import ContrailctlError, UsageError
from contrailctl.sysdump.archive import DumpFolder, check_target, dump_folder, pack


def test_the_archive_has_the_files_below_its_own_name(tmp_path: Path) -> None:
    target = tmp_path / "dump.tar.gz"
    with dump_folder() as folder:
        folder.write("objects/installation/pods.jsonl", "{}\n")
        folder.write("README.txt", "text \udcff")
        assert pack(folder, target) == target.stat().st_size
        root = folder.root
    assert not root.exists()
    assert target.stat().st_mode & 0o777 == 0o600
    with tarfile.open(target) as archive:
        files = [member for member in archive.getmembers() if member.isfile()]
        assert {member.name for member in files} == {"dump/README.txt", "dump/objects/installation/pods.jsonl"}
        assert {(member.uid, member.uname) for member in files} == {(0, "")}


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "dump.tar.gz"
    target.write_text("other")
    with pytest.raises(UsageError, match="already exists"):
        check_target(target)
    with dump_folder() as folder, pytest.raises(ContrailctlError, match="File exists"):
        pack(folder, target)
    assert target.read_text() == "other"


def test_a_missing_folder_is_an_error_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        check_target(tmp_path / "missing" / "dump.tar.gz")


def test_an_incomplete_archive_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "dump.tar.gz"
    with pytest.raises(ContrailctlError, match="No such file"):
        pack(DumpFolder(tmp_path / "missing"), target)
    assert not target.exists()


def test_a_file_that_cannot_be_written_is_an_error_that_names_it() -> None:
    with dump_folder() as folder:
        folder.write("objects", "a file, not a folder")
        with pytest.raises(ContrailctlError, match=r"/objects: File exists"):
            folder.write("objects/pods.jsonl", "{}")
        (folder.root / "full").symlink_to("/dev/full")
        with pytest.raises(ContrailctlError, match=r"/full: No space left on device"):
            folder.write("full", "text")
