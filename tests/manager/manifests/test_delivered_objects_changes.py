"""Which edits of files change an object, and which do not."""

import os
import uuid
from pathlib import Path

from manager.source import Applied, Gone, Nad, Pod, SourceEvent
from tests.manager.manifests.conftest import Listen, nad, namespace, pod, summary


def uid_of(event: SourceEvent) -> str:
    assert isinstance(event, Applied | Gone)
    assert isinstance(event.object, Pod | Nad)
    return event.object.uid


async def test_a_changed_annotation_keeps_the_uid(folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text(pod("web", networks="net-a"))
    async with listen() as events:
        (before, _) = await events.listed()
        (folder / "pod.yaml").write_text(pod("web", networks="net-b"))
        after = await events.next()
    assert summary([after]) == ["Applied Pod web"]
    assert uid_of(after) == uid_of(before)


async def test_only_the_changed_object_is_delivered(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(nad("net-a") + pod("web") + pod("db") + namespace("shop"))
    async with listen() as events:
        await events.listed()
        (folder / "all.yaml").write_text(nad("net-a") + pod("web") + pod("db", networks="net-a") + namespace("shop"))
        assert summary(await events.all()) == ["Applied Pod db"]


async def test_changes_of_unused_keys_are_ignored(folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    async with listen() as events:
        await events.listed()
        os.utime(folder / "pod.yaml")
        (folder / "pod.yaml").write_text("# note\n" + pod("web", more="spec: {containers: []}"))
        assert summary(await events.all()) == []


async def test_renaming_a_file_does_not_change_its_objects(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web") + nad("net-a"))
    async with listen() as events:
        await events.listed()
        (folder / "a.yaml").rename(folder / "b.yml")
        assert summary(await events.all()) == []


async def test_renaming_a_folder_does_not_change_its_objects(folder: Path, listen: Listen) -> None:
    (folder / "a").mkdir()
    (folder / "a/a.yaml").write_text(pod("web") + nad("net-a"))
    async with listen() as events:
        await events.listed()
        (folder / "a").rename(folder / "b")
        assert summary(await events.all()) == []
        (folder / "b/a.yaml").write_text(nad("net-a"))
        assert summary(await events.all()) == ["Gone Pod web"]


async def test_a_pod_moved_to_another_file_is_not_removed(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web") + pod("db"))
    (folder / "b.yaml").write_text(pod("cache"))
    async with listen() as events:
        await events.listed()
        (folder / "a.yaml").write_text(pod("web"))
        (folder / "b.yaml").write_text(pod("cache") + pod("db"))
        assert summary(await events.all()) == []


async def test_a_replaced_file_is_read_again(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web", networks="net-a"))
    status = os.stat(folder / "a.yaml")
    async with listen() as events:
        await events.listed()
        (folder / "new").write_text(pod("web", networks="net-b"))
        os.utime(folder / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
        (folder / "new").rename(folder / "a.yaml")
        assert summary(await events.all()) == ["Applied Pod web"]


async def test_an_object_with_another_uid_replaces_the_old_one(folder: Path, listen: Listen) -> None:
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    (folder / "all.yaml").write_text(pod("web", uid=first) + nad("net-a", uid=first))
    async with listen() as events:
        await events.listed()
        (folder / "all.yaml").write_text(pod("web", uid=second) + nad("net-a", uid=second))
        received = await events.all()
    assert summary(received) == ["Gone Pod web", "Gone Nad net-a", "Applied Nad net-a", "Applied Pod web"]
    assert [uid_of(event) for event in received] == [first, first, second, second]


async def test_removals_come_first_and_pods_before_their_networks(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(nad("net-a") + namespace("shop") + pod("web"))
    async with listen() as events:
        await events.listed()
        (folder / "all.yaml").write_text(pod("db") + namespace("depot") + nad("net-b"))
        assert summary(await events.all()) == [
            "Gone Pod web",
            "Gone Nad net-a",
            "Gone Namespace shop",
            "Applied Namespace depot",
            "Applied Nad net-b",
            "Applied Pod db",
        ]
