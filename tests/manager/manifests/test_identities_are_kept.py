"""An object whose manifest states no uid gets one when it appears, and keeps it until it goes."""

import uuid
from pathlib import Path

import pytest

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import pod_uuid
from manager.source import Applied, Gone, Nad, Pod, SourceEvent
from tests.manager.manifests.conftest import Listen, nad, pod, summary

POD = ("Pod", "default", "web")
NAD = ("NetworkAttachmentDefinition", "default", "net-a")


def uids(events: list[SourceEvent]) -> list[str]:
    told = [event.object for event in events if isinstance(event, Applied | Gone)]
    return [one.uid for one in told if isinstance(one, Pod | Nad)]


async def first_uids(listen: Listen) -> list[str]:
    """What a source tells that starts now."""
    async with listen() as events:
        return uids(await events.listed())


async def test_a_uid_is_remembered_before_anyone_hears_of_the_object(
    folder: Path, listen: Listen, store: SqliteStore
) -> None:
    (folder / "all.yaml").write_text(pod("web") + nad("net-a"))
    async with listen() as events:
        first = await events.next()
        remembered = await store.identities()
        told = [first, await events.next()]
    assert [remembered[NAD], remembered[POD]] == uids(told)


async def test_uids_outlive_a_restart(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(pod("web") + nad("net-a"))
    before = await first_uids(listen)
    assert await first_uids(listen) == before
    assert len(set(before)) == 2


async def test_uids_outlive_a_rename_while_nobody_looked(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web"))
    before = await first_uids(listen)
    (folder / "a.yaml").rename(folder / "b.yaml")
    assert await first_uids(listen) == before


async def test_an_object_that_comes_back_is_another_one(folder: Path, listen: Listen, store: SqliteStore) -> None:
    (folder / "all.yaml").write_text(pod("web") + nad("net-a"))
    async with listen() as events:
        before = uids(await events.listed())
        (folder / "all.yaml").unlink()
        assert sorted(uids(await events.all())) == sorted(before)
        assert POD not in await store.identities()
        (folder / "all.yaml").write_text(pod("web") + nad("net-a"))
        after = uids(await events.all())
    assert len({*before, *after}) == 4


async def test_a_uid_is_forgotten_before_anyone_hears_that_the_object_is_gone(
    folder: Path, listen: Listen, store: SqliteStore
) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    async with listen() as events:
        await events.listed()
        (folder / "pod.yaml").unlink()
        assert summary([await events.next()]) == ["Gone Pod web"]
        assert await store.identities() == {}


async def test_what_went_while_nobody_looked_is_forgotten(folder: Path, listen: Listen, store: SqliteStore) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    await first_uids(listen)
    (folder / "pod.yaml").unlink()
    assert await first_uids(listen) == []
    assert await store.identities() == {}


async def test_nothing_is_forgotten_while_a_file_cannot_be_read(folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    before = await first_uids(listen)
    (folder / "pod.yaml").write_text("kind: [")
    async with listen() as events:
        assert uids(await events.listed()) == []
        (folder / "pod.yaml").write_text(pod("web"))
        assert uids(await events.listed()) == before


@pytest.mark.parametrize("stated", ["6F9619FF-8B86-D011-B42D-00C04FC964FF", "6f9619ff8b86d011b42d00c04fc964ff"])
async def test_a_stated_uuid_is_told_in_canonical_form(stated: str, folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text(pod("web", uid=stated))
    assert await first_uids(listen) == ["6f9619ff-8b86-d011-b42d-00c04fc964ff"]


async def test_a_uid_that_is_no_uuid_is_mapped_to_one_always_the_same(
    folder: Path, listen: Listen, store: SqliteStore
) -> None:
    (folder / "all.yaml").write_text(pod("web", uid="pod-7") + nad("net-a", uid="net-7"))
    told = await first_uids(listen)
    assert told == [pod_uuid("net-7"), pod_uuid("pod-7")]
    assert [str(uuid.UUID(uid)) for uid in told] == told
    assert await store.identities() == {}


async def test_a_uid_that_comes_to_be_stated_replaces_the_one_that_was_given(
    folder: Path, listen: Listen, store: SqliteStore
) -> None:
    stated = str(uuid.uuid4())
    (folder / "pod.yaml").write_text(pod("web"))
    async with listen() as events:
        (given,) = uids(await events.listed())
        (folder / "pod.yaml").write_text(pod("web", uid=stated))
        told = [await events.next(), await events.next()]
        assert summary(told) == ["Gone Pod web", "Applied Pod web"]
        assert uids(told) == [given, stated]
        assert await store.identities() == {}


async def test_a_uid_that_is_stated_no_more_is_kept(folder: Path, listen: Listen) -> None:
    stated = str(uuid.uuid4())
    (folder / "pod.yaml").write_text(pod("web", uid=stated))
    async with listen() as events:
        await events.listed()
        (folder / "pod.yaml").write_text(pod("web"))
        assert summary(await events.all()) == []
    assert stated in await first_uids(listen)


async def test_pods_of_one_name_in_two_namespaces_have_two_uids(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(pod("web") + pod("web", namespace="shop"))
    assert len(set(await first_uids(listen))) == 2
