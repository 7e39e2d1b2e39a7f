"""A folder that is missing, removed, recreated or a link."""

import os
import shutil
from pathlib import Path

import pytest

from manager.manifests.errors import FolderError, ManifestError
from manager.source import Problem
from tests.manager.manifests.conftest import Listen, pod, summary


async def test_a_missing_folder_at_start_is_an_error(folder: Path, listen: Listen) -> None:
    shutil.rmtree(folder)
    with pytest.raises(FolderError) as caught:
        async with listen():
            pass
    assert str(caught.value) == f"{folder}: cannot read the folder: No such file or directory"
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, ManifestError)


async def test_a_file_in_place_of_the_folder_is_an_error(folder: Path, listen: Listen) -> None:
    os.rename(folder, folder.with_name("elsewhere"))
    os.mknod(folder)
    with pytest.raises(FolderError, match="not a directory"):
        async with listen():
            pass


async def test_objects_stay_when_the_folder_is_removed(folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    async with listen(rescan=0.1) as events:
        await events.listed()
        os.rename(folder, folder.with_name("elsewhere"))
        problem = await events.next()
        assert isinstance(problem, Problem)
        assert (problem.kind, problem.name, problem.reason) == ("Manifest", ".", "ManifestUnreadable")
        assert problem.message == f".: folder {folder} cannot be read: No such file or directory"
        folder.with_name("elsewhere").rename(folder)
        assert summary(await events.all()) == []


async def test_a_replaced_folder_is_read_and_watched(folder: Path, listen: Listen) -> None:
    os.rename(folder, folder.with_name("old"))
    os.symlink("old", folder)
    (folder / "pod.yaml").write_text(pod("web"))
    async with listen(rescan=0.1) as events:
        await events.listed()
        (folder.with_name("new")).mkdir()
        (folder.with_name("new") / "db.yaml").write_text(pod("db"))
        (folder.with_name("link")).symlink_to("new")
        os.replace(folder.with_name("link"), folder)
        assert summary([await events.next(), await events.next()]) == ["Gone Pod web", "Applied Pod db"]
        (folder / "cache.yaml").write_text(pod("cache"))
        assert summary([await events.next()]) == ["Applied Pod cache"]


async def test_the_folder_may_be_a_symbolic_link(folder: Path, listen: Listen) -> None:
    os.rename(folder, folder.with_name("real"))
    os.symlink("real", folder)
    (folder / "pod.yaml").write_text(pod("web"))
    async with listen() as events:
        assert summary(await events.listed()) == ["Applied Pod web", "Listed"]
        (folder.with_name("real") / "db.yaml").write_text(pod("db"))
        assert summary([await events.next()]) == ["Applied Pod db"]


async def test_a_mounted_configmap_is_read_once_and_changes_atomically(folder: Path, listen: Listen) -> None:
    """A ConfigMap volume has a hidden folder per version, a link to the current one, and a link per file through it."""
    for version, names in (("..v1", ("web", "db")), ("..v2", ("web", "cache"))):
        (folder / version).mkdir()
        for name in names:
            (folder / version / f"{name}.yaml").write_text(pod(name))
    (folder / "..data").symlink_to("..v1")
    for name in ("web", "db"):
        (folder / f"{name}.yaml").symlink_to(f"..data/{name}.yaml")
    async with listen() as events:
        assert summary(await events.listed()) == ["Applied Pod db", "Applied Pod web", "Listed"]
        (folder / "cache.yaml").symlink_to("..data/cache.yaml")
        (folder / "..new").symlink_to("..v2")
        os.replace(folder / "..new", folder / "..data")
        (folder / "db.yaml").unlink()
        assert summary(await events.all()) == ["Gone Pod db", "Applied Pod cache"]


async def test_links_to_folders_are_not_followed(folder: Path, tmp_path: Path, listen: Listen) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/pod.yaml").write_text(pod("web"))
    (folder / "link").symlink_to(tmp_path / "other")
    (folder / "loop.yaml").symlink_to(folder)
    async with listen() as events:
        assert summary(await events.listed()) == ["Listed"]


async def test_a_deeply_nested_folder_is_read(folder: Path, listen: Listen) -> None:
    deep = folder
    for _ in range(600):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "pod.yaml").write_text(pod("web"))
    async with listen() as events:
        assert summary(await events.listed()) == ["Applied Pod web", "Listed"]
