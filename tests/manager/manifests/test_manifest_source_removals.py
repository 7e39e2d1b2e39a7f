"""Objects are removed with their file, or from it."""

from pathlib import Path

from manager.source import Gone, Pod
from tests.manager.manifests.conftest import Listen, nad, pod, summary


async def test_removing_a_file_removes_its_objects(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(nad("net-a") + pod("web"))
    async with listen() as events:
        await events.listed()
        (folder / "all.yaml").unlink()
        assert summary(await events.all()) == ["Gone Pod web", "Gone Nad net-a"]


async def test_a_removed_object_has_its_last_state(folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text(pod("web", networks="net-a"))
    async with listen() as events:
        await events.listed()
        (folder / "pod.yaml").write_text(pod("web", networks="net-b"))
        await events.next()
        (folder / "pod.yaml").unlink()
        gone = await events.next()
    assert isinstance(gone, Gone)
    assert isinstance(gone.object, Pod)
    assert gone.object.annotations == {"k8s.v1.cni.cncf.io/networks": "net-b"}


async def test_an_object_removed_from_its_file_is_gone(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(pod("web") + pod("db"))
    async with listen() as events:
        await events.listed()
        (folder / "all.yaml").write_text(pod("db"))
        assert summary(await events.all()) == ["Gone Pod web"]


async def test_emptying_a_file_removes_its_objects(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(pod("web"))
    async with listen() as events:
        await events.listed()
        (folder / "all.yaml").write_text("")
        assert summary(await events.all()) == ["Gone Pod web"]


async def test_removing_a_subfolder_removes_its_objects(folder: Path, listen: Listen) -> None:
    (folder / "a").mkdir()
    (folder / "a/pod.yaml").write_text(pod("web"))
    async with listen() as events:
        await events.listed()
        (folder / "a/pod.yaml").unlink()
        (folder / "a").rmdir()
        assert summary(await events.all()) == ["Gone Pod web"]


async def test_renaming_a_file_to_another_suffix_removes_its_objects(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web"))
    async with listen() as events:
        await events.listed()
        (folder / "a.yaml").rename(folder / "a.yaml.off")
        assert summary(await events.all()) == ["Gone Pod web"]
