"""What is a change of an object, and what only looks like one."""

import os
import uuid
from pathlib import Path

from manager.source import Applied, Gone, Nad, Pod, SourceEvent
from tests.manager.manifests.conftest import Listen, nad, namespace, pod, summary


def uid_of(event: SourceEvent) -> str:
    assert isinstance(event, Applied | Gone)
    assert isinstance(event.object, Pod | Nad)
    return event.object.uid


async def test_another_annotation_is_a_change_of_the_same_pod(folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text(pod("web", networks="net-a"))
    async with listen() as events:
        (before, _) = await events.listed()
        (folder / "pod.yaml").write_text(pod("web", networks="net-b"))
        after = await events.next()
    assert summary([after]) == ["Applied Pod web"]
    assert uid_of(after) == uid_of(before)


async def test_only_the_object_that_changed_is_told(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(nad("net-a") + pod("web") + pod("db") + namespace("shop"))
    async with listen() as events:
        await events.listed()
        (folder / "all.yaml").write_text(nad("net-a") + pod("web") + pod("db", networks="net-a") + namespace("shop"))
        assert summary(await events.all()) == ["Applied Pod db"]


async def test_what_we_do_not_read_can_change_at_will(folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    async with listen() as events:
        await events.listed()
        os.utime(folder / "pod.yaml")
        (folder / "pod.yaml").write_text("# note\n" + pod("web", more="spec: {containers: []}"))
        assert summary(await events.all()) == []


async def test_a_renamed_file_is_no_change_of_its_objects(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web") + nad("net-a"))
    async with listen() as events:
        await events.listed()
        (folder / "a.yaml").rename(folder / "b.yml")
        assert summary(await events.all()) == []


async def test_a_renamed_folder_is_no_change_of_its_objects(folder: Path, listen: Listen) -> None:
    (folder / "a").mkdir()
    (folder / "a/a.yaml").write_text(pod("web") + nad("net-a"))
    async with listen() as events:
        await events.listed()
        (folder / "a").rename(folder / "b")
        assert summary(await events.all()) == []
        (folder / "b/a.yaml").write_text(nad("net-a"))
        assert summary(await events.all()) == ["Gone Pod web"]


async def test_a_pod_that_is_moved_to_another_file_was_never_away(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web") + pod("db"))
    (folder / "b.yaml").write_text(pod("cache"))
    async with listen() as events:
        await events.listed()
        (folder / "a.yaml").write_text(pod("web"))
        (folder / "b.yaml").write_text(pod("cache") + pod("db"))
        assert summary(await events.all()) == []


async def test_a_file_that_is_replaced_by_another_is_read_again(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web", networks="net-a"))
    status = os.stat(folder / "a.yaml")
    async with listen() as events:
        await events.listed()
        (folder / "new").write_text(pod("web", networks="net-b"))
        os.utime(folder / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
        (folder / "new").rename(folder / "a.yaml")
        assert summary(await events.all()) == ["Applied Pod web"]


async def test_another_uid_is_another_object(folder: Path, listen: Listen) -> None:
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    (folder / "all.yaml").write_text(pod("web", uid=first) + nad("net-a", uid=first))
    async with listen() as events:
        await events.listed()
        (folder / "all.yaml").write_text(pod("web", uid=second) + nad("net-a", uid=second))
        told = await events.all()
    assert summary(told) == ["Gone Pod web", "Gone Nad net-a", "Applied Nad net-a", "Applied Pod web"]
    assert [uid_of(event) for event in told] == [first, first, second, second]


async def test_gone_comes_before_applied_and_pods_go_before_their_networks(folder: Path, listen: Listen) -> None:
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
