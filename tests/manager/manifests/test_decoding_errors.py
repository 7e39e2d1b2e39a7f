"""An invalid manifest is a Problem; its earlier objects stay, and other objects are not affected."""

import os
from pathlib import Path

import pytest

from manager.manifests.folder_scan import MAX_FILE_SIZE
from manager.source import Applied, Problem, SourceEvent
from tests.manager.manifests.conftest import Listen, nad, pod, summary

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(
    f"c{i}: &c{i} [*c{i - 1}, *c{i - 1}]\n" for i in range(1, 40)
).replace("*c0", "*b")


def problem_in(events: list[SourceEvent]) -> Problem:
    (problem,) = [event for event in events if isinstance(event, Problem)]
    return problem


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("bad.yaml", "a: b: c", "line 1, column 5: mapping values are not allowed"),
        ("bad.yaml", pod("web") + "---\nkind: [", "line 13, column 1: "),
        ("bad.yaml", "kind: Pod\nkind: Pod\n", "kind: duplicate key, in line 1 and in line 2"),
        ("bad.yaml", "a: !!python/object/apply:os.system [id]", "could not determine a constructor"),
        ("bad.yaml", b"\xff\xfe\x00", "not UTF-8: invalid byte at offset 0"),
        ("bad.yaml", "a: \x07", "control characters are not allowed"),
        ("bad.yaml", BOMB, "values, counted with aliases expanded"),
        ("bad.yaml", "&a [*a]", "nested deeper than 100 levels"),
        ("bad.yaml", "[" * 1_000_000, "nested deeper than 100 levels"),
        ("bad.yaml", b"#" * (MAX_FILE_SIZE + 1), f"larger than {MAX_FILE_SIZE} bytes"),
        ("bad.json", '{"kind": "Pod",}', "line 1, column 16: "),
        ("bad.json", "{“kind”: 1}", "“ (U+201C) at line 1, column 2 is a typographic quote"),
        ("bad.json", "kind: Pod", "is not valid JSON: line 1, column 1"),
        ("bad.yaml", "just a text", "document 1: 'just a text' is not a Kubernetes object"),
        ("bad.yaml", "---\n[1, 2]", "document 1: [1, 2] is not a Kubernetes object"),
        ("bad.yaml", "---\n---\nmetadata: {name: web}", "document 2: kind: None is not a string"),
        ("bad.yaml", "kind: Pod\napiVersion: 1", "document 1: apiVersion: 1 is not a string"),
        ("bad.yaml", "kind: List\nitems: {}", "document 1: items: {} is not a list"),
        (
            "bad.yaml",
            "kind: List\nitems: [{kind: List, items: []}]",
            "document 1, item 1: kind: a List must not",
        ),
        ("bad.yaml", "kind: List\nitems: [x]", "document 1, item 1: 'x' is not a Kubernetes object"),
        ("bad.yaml", "kind: Pod\nmetadata: {}", "document 1: metadata.name is missing"),
        ("bad.yaml", "kind: Pod", "document 1: metadata.name is missing"),
        ("bad.yaml", "kind: Pod\nmetadata: na", "document 1: metadata: Expected `object`, got `str`"),
        ("bad.yaml", "kind: Pod\nmetadata: {name: 5}", "document 1: metadata.name: Expected `str | null`, got `int`"),
        ("bad.yaml", "kind: Pod\nmetadata: {generateName: web-}", "metadata.generateName: 'web-' needs an API server"),
        ("bad.yaml", "kind: Pod\nmetadata: {name: a/b}", "metadata: 'a/b' is not a valid object name"),
        ("bad.yaml", "kind: Pod\nmetadata: {name: ..}", "metadata: '..' is not a valid object name"),
        ("bad.yaml", 'kind: Pod\nmetadata: {name: "a\\0b"}', "metadata: 'a\\x00b' is not a valid object name"),
        ("bad.yaml", "kind: Pod\nmetadata: {name: a__b}", "metadata: 'a__b' is not a valid object name"),
        (
            "bad.yaml",
            "kind: Pod\nmetadata: {name: a, namespace: ../x}",
            "metadata: '../x' is not a valid namespace name",
        ),
        ("bad.yaml", "kind: Namespace\nmetadata: {name: Shop}", "metadata: 'Shop' is not a valid namespace name"),
    ],
)
async def test_an_invalid_file_is_reported_with_the_reason(
    name: str, content: str | bytes, reason: str, folder: Path, listen: Listen
) -> None:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "good.yaml").write_text(pod("good"))
    async with listen() as events:
        received = await events.listed()
    assert summary(received) == ["Applied Pod good", f"Problem Manifest {name}", "Listed with gaps"]
    assert problem_in(received).message.startswith(f"{name}: ")
    assert reason in problem_in(received).message


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("spec: {hostNetwork: maybe}", "spec.hostNetwork: Expected `bool | null`, got `str`"),
        ("spec: {nodeName: [a]}", "spec.nodeName: Expected `str | null`, got `array`"),
        ("spec: 5", "spec: Expected `object | null`, got `int`"),
        ("status: {conditions: [{type: 1}]}", "status.conditions[0].type: Expected `str | null`, got `int`"),
    ],
)
async def test_a_value_of_the_wrong_type_is_reported_on_the_object(
    more: str, reason: str, folder: Path, listen: Listen
) -> None:
    (folder / "pods.yaml").write_text(pod("good") + pod("bad", namespace="shop", more=more))
    async with listen() as events:
        received = await events.listed()
    assert summary(received) == ["Applied Pod good", "Problem Pod bad", "Listed with gaps"]
    assert problem_in(received) == Problem(
        kind="Pod",
        namespace="shop",
        name="bad",
        uid="",
        reason="ManifestInvalid",
        message=f"pods.yaml, document 2: {reason}",
    )


async def test_an_invalid_item_of_a_list_is_reported_with_its_position(folder: Path, listen: Listen) -> None:
    items = "kind: List\nitems:\n- {kind: Pod, metadata: {name: a}}\n- {kind: Pod, metadata: {name: b, uid: 5}}\n"
    (folder / "list.yaml").write_text(items)
    async with listen() as events:
        received = await events.listed()
    assert summary(received) == ["Applied Pod a", "Problem Pod b", "Listed with gaps"]
    assert problem_in(received).message.startswith("list.yaml, document 1, item 2: metadata.uid: Expected")


async def test_a_problem_of_a_namespace_is_reported_on_the_file(folder: Path, listen: Listen) -> None:
    (folder / "ns.yaml").write_text("kind: Namespace\nmetadata: {name: shop, annotations: {a: {}}}\n")
    async with listen() as events:
        problem = problem_in(await events.listed())
    assert (problem.kind, problem.name) == ("Manifest", "ns.yaml")
    assert "Namespace shop: ns.yaml, document 1: metadata.annotations: a: {} is not a string" in problem.message


async def test_objects_of_a_broken_file_stay_until_it_is_repaired(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(nad("net-a") + pod("web") + pod("db"))
    async with listen() as events:
        await events.listed()
        (folder / "all.yaml").write_text(nad("net-a") + "---\nkind: [")
        assert summary(await events.all()) == ["Problem Manifest all.yaml"]
        (folder / "all.yaml").write_text(nad("net-a") + pod("web", networks="net-a"))
        assert summary(await events.all()) == ["Gone Pod db", "Applied Pod web"]


async def test_objects_of_a_broken_file_are_removed_with_it(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(pod("web"))
    async with listen() as events:
        await events.listed()
        (folder / "all.yaml").write_text("kind: [")
        await events.all()
        (folder / "all.yaml").unlink()
        assert summary(await events.all()) == ["Gone Pod web"]


async def test_objects_of_a_broken_file_stay_when_it_is_renamed(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text(pod("web"))
    async with listen() as events:
        await events.listed()
        with (folder / "a.yaml").open("a") as file:  # to the same inode
            file.write("kind: [")
        (folder / "a.yaml").rename(folder / "b.yaml")
        assert summary(await events.all()) == ["Problem Manifest b.yaml"]
        (folder / "b.yaml").rename(folder / "c.yaml")
        assert summary(await events.all()) == ["Problem Manifest c.yaml"]
        (folder / "c.yaml").write_text(pod("web"))
        assert summary(await events.all()) == []
        (folder / "c.yaml").unlink()
        assert summary(await events.all()) == ["Gone Pod web"]


async def test_a_broken_object_keeps_its_last_valid_state_and_others_are_updated(folder: Path, listen: Listen) -> None:
    (folder / "all.yaml").write_text(pod("web", networks="net-a") + pod("db"))
    async with listen() as events:
        before = await events.listed()
        (folder / "all.yaml").write_text(pod("web", more="spec: 5") + pod("db", networks="net-b") + pod("cache"))
        received = await events.all()
        assert summary(received) == ["Applied Pod db", "Applied Pod cache", "Problem Pod web"]
        assert isinstance(before[0], Applied)
        assert problem_in(received).uid == before[0].object.uid  # type: ignore[union-attr]  # always a pod here
        (folder / "all.yaml").write_text(pod("web", networks="net-a") + pod("db", networks="net-b") + pod("cache"))
        assert summary(await events.all()) == []


async def test_a_pod_can_be_moved_out_of_a_broken_file(folder: Path, listen: Listen) -> None:
    (folder / "broken.yaml").write_text(pod("web") + pod("db"))
    async with listen() as events:
        await events.listed()
        (folder / "broken.yaml").write_text("kind: [")
        await events.all()
        (folder / "web.yaml").write_text(pod("web", networks="net-a"))
        assert summary(await events.all()) == ["Applied Pod web"]
        (folder / "broken.yaml").unlink()
        assert summary(await events.all()) == ["Gone Pod db"]


async def test_a_problem_is_reported_once_and_again_when_it_recurs(folder: Path, listen: Listen) -> None:
    async with listen(rescan=0.05) as events:
        await events.listed()
        (folder / "bad.yaml").write_text("kind: [")
        assert summary(await events.all()) == ["Problem Manifest bad.yaml"]
        os.utime(folder / "bad.yaml")
        assert summary(await events.all()) == []
        (folder / "bad.yaml").write_text("")
        assert summary(await events.all()) == []
        (folder / "bad.yaml").write_text("kind: [")
        assert summary(await events.all()) == ["Problem Manifest bad.yaml"]


async def test_listed_is_repeated_when_everything_can_be_read(folder: Path, listen: Listen) -> None:
    (folder / "bad.yaml").write_text("kind: [")
    async with listen() as events:
        assert summary(await events.listed()) == ["Problem Manifest bad.yaml", "Listed with gaps"]
        (folder / "bad.yaml").write_text(pod("web"))
        assert summary(await events.listed()) == ["Applied Pod web", "Listed"]
        (folder / "bad.yaml").write_text("kind: [")
        assert summary(await events.all()) == ["Problem Manifest bad.yaml"]
        (folder / "bad.yaml").write_text("")
        assert summary(await events.all()) == ["Gone Pod web"]
