"""An object without a uid in its manifest is given one when it appears, and keeps it until it is removed."""

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
    received = [event.object for event in events if isinstance(event, Applied | Gone)]
    return [one.uid for one in received if isinstance(one, Pod | Nad)]


async def uids_at_start(listen: Listen) -> list[str]:
    """Returns the uids that a newly started source delivers."""
    async with listen() as events:
        return uids(await events.listed())


async def test_a_uid_is_stored_before_the_object_is_delivered(folder: Path, listen: Listen, store: SqliteStore) -> None:
    (folder / "all.yaml").write_text(pod("web") + nad("net-a"))
    async with listen() as events:
        first = await events.next()
        remembered = await store.identities()
        received = [first, await events.next()]
    assert [remembered[NAD], remembered[POD]] == uids(received)


async def test_uids_survive_a_restart(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(pod("web") + nad("net-a"))
    before = await uids_at_start(listen)
    assert await uids_at_start(listen) == before
    assert len(set(before)) == 2


async def test_uids_survive_a_rename_while_stopped(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web"))
    before = await uids_at_start(listen)
    (folder / "a.yaml").rename(folder / "b.yaml")
    assert await uids_at_start(listen) == before


async def test_an_object_that_is_recreated_has_a_new_uid(folder: Path, listen: Listen, store: SqliteStore) -> None:
    (folder / "all.yaml").write_text(pod("web") + nad("net-a"))
    async with listen() as events:
        before = uids(await events.listed())
        (folder / "all.yaml").unlink()
        assert sorted(uids(await events.all())) == sorted(before)
        assert POD not in await store.identities()
        (folder / "all.yaml").write_text(pod("web") + nad("net-a"))
        after = uids(await events.all())
    assert len({*before, *after}) == 4


async def test_a_uid_is_removed_before_the_removal_is_delivered(
    folder: Path, listen: Listen, store: SqliteStore
) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    async with listen() as events:
        await events.listed()
        (folder / "pod.yaml").unlink()
        assert summary([await events.next()]) == ["Gone Pod web"]
        assert await store.identities() == {}


async def test_uids_of_objects_gone_while_stopped_are_removed(folder: Path, listen: Listen, store: SqliteStore) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    await uids_at_start(listen)
    (folder / "pod.yaml").unlink()
    assert await uids_at_start(listen) == []
    assert await store.identities() == {}


async def test_no_uid_is_removed_while_a_file_cannot_be_read(folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text(pod("web"))
    before = await uids_at_start(listen)
    (folder / "pod.yaml").write_text("kind: [")
    async with listen() as events:
        assert uids(await events.listed()) == []
        (folder / "pod.yaml").write_text(pod("web"))
        assert uids(await events.listed()) == before


@pytest.mark.parametrize("stated", ["6F9619FF-8B86-D011-B42D-00C04FC964FF", "6f9619ff8b86d011b42d00c04fc964ff"])
async def test_a_uuid_in_a_manifest_becomes_canonical(stated: str, folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text(pod("web", uid=stated))
    assert await uids_at_start(listen) == ["6f9619ff-8b86-d011-b42d-00c04fc964ff"]


async def test_a_uid_that_is_not_a_uuid_maps_to_a_stable_uuid(folder: Path, listen: Listen, store: SqliteStore) -> None:
    (folder / "all.yaml").write_text(pod("web", uid="pod-7") + nad("net-a", uid="net-7"))
    received = await uids_at_start(listen)
    assert received == [pod_uuid("net-7"), pod_uuid("pod-7")]
    assert [str(uuid.UUID(uid)) for uid in received] == received
    assert await store.identities() == {}


async def test_a_uid_added_to_the_manifest_replaces_the_assigned_one(
    folder: Path, listen: Listen, store: SqliteStore
) -> None:
    stated = str(uuid.uuid4())
    (folder / "pod.yaml").write_text(pod("web"))
    async with listen() as events:
        (given,) = uids(await events.listed())
        (folder / "pod.yaml").write_text(pod("web", uid=stated))
        received = [await events.next(), await events.next()]
        assert summary(received) == ["Gone Pod web", "Applied Pod web"]
        assert uids(received) == [given, stated]
        assert await store.identities() == {}


async def test_a_uid_removed_from_the_manifest_is_kept(folder: Path, listen: Listen) -> None:
    stated = str(uuid.uuid4())
    (folder / "pod.yaml").write_text(pod("web", uid=stated))
    async with listen() as events:
        await events.listed()
        (folder / "pod.yaml").write_text(pod("web"))
        assert summary(await events.all()) == []
    assert stated in await uids_at_start(listen)


async def test_pods_of_the_same_name_in_two_namespaces_have_two_uids(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(pod("web") + pod("web", namespace="shop"))
    assert len(set(await uids_at_start(listen))) == 2
