"""A duplicate object: one definition counts, and a Problem names both locations."""

from pathlib import Path

from manager.source import Applied, Pod, Problem
from tests.manager.manifests.conftest import Listen, nad, namespace, pod, summary


def networks_of(event: object) -> str:
    assert isinstance(event, Applied)
    assert isinstance(event.object, Pod)
    return event.object.annotations["k8s.v1.cni.cncf.io/networks"]


async def test_at_start_the_first_path_counts(folder: Path, listen: Listen) -> None:
    (folder / "b.yaml").write_text(pod("web", networks="from-b"))
    (folder / "a.yaml").write_text(pod("web", networks="from-a"))
    async with listen() as events:
        received = await events.listed()
    assert summary(received) == ["Applied Pod web", "Problem Pod web", "Listed"]
    assert networks_of(received[0]) == "from-a"
    assert isinstance(received[0], Applied)
    assert isinstance(received[0].object, Pod)
    assert received[1] == Problem(
        kind="Pod",
        namespace="default",
        name="web",
        uid=received[0].object.uid,
        reason="ManifestDuplicate",
        message="defined in a.yaml, document 1 and again in b.yaml, document 1: the first location counts",
    )


async def test_the_known_file_counts_while_it_defines_the_object(folder: Path, listen: Listen) -> None:
    (folder / "b.yaml").write_text(pod("web", networks="from-b"))
    async with listen() as events:
        await events.listed()
        (folder / "a.yaml").write_text(pod("web", networks="from-a"))
        assert summary(await events.all()) == ["Problem Pod web"]
        (folder / "b.yaml").write_text(pod("web", networks="changed"))
        received = await events.all()
        assert summary(received) == ["Applied Pod web"]
        assert networks_of(received[0]) == "changed"
        (folder / "b.yaml").unlink()
        received = await events.all()
        assert summary(received) == ["Applied Pod web"]
        assert networks_of(received[0]) == "from-a"


async def test_a_duplicate_in_one_file_is_reported_with_both_documents(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web", networks="first") + nad("net-a") + pod("web", networks="second"))
    async with listen() as events:
        received = await events.listed()
    assert summary(received) == ["Applied Nad net-a", "Applied Pod web", "Problem Pod web", "Listed"]
    assert networks_of(received[1]) == "first"
    assert isinstance(received[2], Problem)
    assert "defined in a.yaml, document 1 and again in a.yaml, document 3" in received[2].message


async def test_a_duplicate_nad_is_reported(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(nad("net-a"))
    (folder / "b.yaml").write_text(nad("net-a", cidr="10.2.0.0/16"))
    async with listen() as events:
        received = await events.listed()
    assert summary(received) == ["Applied Nad net-a", "Problem NetworkAttachmentDefinition net-a", "Listed"]


async def test_a_duplicate_namespace_is_reported_on_the_later_file(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(namespace("shop"))
    (folder / "b.yaml").write_text(namespace("shop"))
    async with listen() as events:
        assert summary(await events.listed()) == ["Applied Namespace shop", "Problem Manifest b.yaml", "Listed"]


async def test_pods_of_the_same_name_in_two_namespaces_are_two_pods(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web") + pod("web", namespace="shop") + nad("web"))
    async with listen() as events:
        assert summary(await events.listed()) == ["Applied Nad web", "Applied Pod web", "Applied Pod web", "Listed"]
