"""Unreadable files count as broken until they can be read."""

import os
from pathlib import Path

import pytest

from manager.source import Problem
from tests.manager.manifests.conftest import Listen, pod, summary


async def test_a_dangling_link_is_a_problem_until_its_target_exists(
    folder: Path, tmp_path: Path, listen: Listen
) -> None:
    (folder / "pod.yaml").symlink_to(tmp_path / "target")
    async with listen(rescan=0.05) as events:
        assert summary(await events.listed()) == ["Problem Manifest pod.yaml", "Listed with gaps"]
        (tmp_path / "target").write_text(pod("web"))
        assert summary(await events.listed()) == ["Applied Pod web", "Listed"]
        (tmp_path / "target").unlink()
        assert summary(await events.all()) == ["Problem Manifest pod.yaml"]


async def test_a_circular_link_is_a_problem(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").symlink_to("b.yaml")
    (folder / "b.yaml").symlink_to("a.yaml")
    async with listen() as events:
        received = await events.listed()
    assert summary(received) == ["Problem Manifest a.yaml", "Problem Manifest b.yaml", "Listed with gaps"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
async def test_a_file_that_is_not_regular_is_never_opened(make: object, folder: Path, listen: Listen) -> None:
    assert callable(make)
    make(folder / "odd.yaml")
    async with listen() as events:
        received = await events.listed()
    assert summary(received) == ["Problem Manifest odd.yaml", "Listed with gaps"]
    assert isinstance(received[0], Problem)
    assert received[0].message == "odd.yaml: not a regular file"


async def test_a_folder_with_a_manifest_suffix_is_scanned(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").mkdir()
    (folder / "a.yaml/b.yaml").write_text(pod("web"))
    async with listen() as events:
        assert summary(await events.listed()) == ["Applied Pod web", "Listed"]


async def test_a_disk_error_is_a_problem_and_the_read_is_retried(folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").symlink_to("/proc/self/mem")  # a regular file whose reads fail at offset 0
    async with listen(rescan=0.05) as events:
        received = await events.listed()
        assert summary(received) == ["Problem Manifest pod.yaml", "Listed with gaps"]
        assert isinstance(received[0], Problem)
        assert received[0].message == "pod.yaml: cannot be read: Input/output error"
        assert summary(await events.all()) == []
        (folder / "pod.yaml").unlink()
        (folder / "pod.yaml").write_text(pod("web"))
        assert summary(await events.listed()) == ["Applied Pod web", "Listed"]


async def test_a_file_name_that_is_not_utf_8_is_escaped(folder: Path, listen: Listen) -> None:
    (folder / os.fsdecode(b"\xff.yaml")).write_text("kind: [")
    async with listen() as events:
        assert summary(await events.listed()) == ["Problem Manifest \\xff.yaml", "Listed with gaps"]
