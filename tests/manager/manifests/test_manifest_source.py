"""Objects at start and objects that are added later."""

import json
import uuid
from pathlib import Path

import pytest

from manager.source import Applied, Nad, Namespace, Pod, SourceEvent
from tests.manager.manifests.conftest import Listen, nad, namespace, pod, summary


def objects(events: list[SourceEvent]) -> list[Pod | Nad | Namespace]:
    return [event.object for event in events if isinstance(event, Applied)]


async def test_an_empty_folder_is_listed(listen: Listen) -> None:
    async with listen() as events:
        assert summary(await events.listed()) == ["Listed"]


async def test_at_start_networks_are_delivered_before_pods(folder: Path, listen: Listen) -> None:
    (folder / "a-pod.yaml").write_text(pod("web") + nad("net-a"))
    (folder / "b.yml").write_text(pod("db"))
    (folder / "c.json").write_text(json.dumps({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "shop"}}))
    (folder / "d.yaml").write_text(nad("net-b"))
    async with listen() as events:
        assert summary(await events.listed()) == [
            "Applied Namespace shop",
            "Applied Nad net-a",
            "Applied Nad net-b",
            "Applied Pod web",
            "Applied Pod db",
            "Listed",
        ]


async def test_a_pod_with_all_keys(folder: Path, listen: Listen) -> None:
    uid = str(uuid.uuid4())
    more = "spec: {nodeName: worker-7, hostNetwork: true}\n"
    (folder / "pod.yaml").write_text(pod("web", namespace="shop", networks="net-a", uid=uid, more=more))
    async with listen() as events:
        assert await events.next() == Applied(
            Pod(
                namespace="shop",
                name="web",
                uid=uid,
                node="worker-7",
                annotations={"k8s.v1.cni.cncf.io/networks": "net-a"},
                host_network=True,
            )
        )


async def test_a_pod_with_only_a_name(folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: web}}")
    async with listen() as events:
        (found, *_) = objects(await events.listed())
    assert isinstance(found, Pod)
    assert (found.namespace, found.node, found.annotations) == ("default", "worker-1", {})
    assert str(uuid.UUID(found.uid)) == found.uid


@pytest.mark.parametrize("empty", ["namespace:", "annotations:", "uid: ''", "namespace: ''", "labels:"])
async def test_a_key_without_a_value_counts_as_absent(empty: str, folder: Path, listen: Listen) -> None:
    text = f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  {empty}\nspec:\nstatus:\n"
    (folder / "pod.yaml").write_text(text)
    async with listen() as events:
        assert summary(await events.listed()) == ["Applied Pod web", "Listed"]


@pytest.mark.parametrize(
    ("phase", "condition", "gone"),
    [
        ("Succeeded", "False", True),
        ("Failed", "False", True),
        ("Succeeded", "True", False),
        ("Running", "False", False),
        ("Pending", "False", False),
    ],
)
async def test_a_pod_is_gone_when_it_has_ended_without_a_sandbox(
    phase: str, condition: str, gone: bool, folder: Path, listen: Listen
) -> None:
    conditions = [{"type": "Ready", "status": "False"}, {"type": "PodReadyToStartContainers", "status": condition}]
    (folder / "pod.yaml").write_text(pod("web", more=f"status: {{phase: {phase}, conditions: {conditions}}}"))
    async with listen() as events:
        (found, *_) = objects(await events.listed())
    assert isinstance(found, Pod)
    assert found.gone is gone


async def test_an_ended_pod_without_conditions_is_not_gone(folder: Path, listen: Listen) -> None:
    (folder / "pod.yaml").write_text(pod("web", more="status: {phase: Failed}"))
    async with listen() as events:
        (found, *_) = objects(await events.listed())
    assert isinstance(found, Pod)
    assert not found.gone


async def test_the_config_hash_of_a_static_pod_is_delivered(folder: Path, listen: Listen) -> None:
    text = "kind: Pod\nmetadata: {name: web, annotations: {kubernetes.io/config.hash: 0af1}}\n"
    (folder / "pod.yaml").write_text(text)
    async with listen() as events:
        (found, *_) = objects(await events.listed())
    assert isinstance(found, Pod)
    assert found.config_hash == "0af1"


@pytest.mark.parametrize("version", ["k8s.cni.cncf.io/v1", "k8s.cni.cncf.io/v2alpha1"])
async def test_a_nad_of_any_version(version: str, folder: Path, listen: Listen) -> None:
    (folder / "nad.yaml").write_text(nad("net-a").replace("k8s.cni.cncf.io/v1", version))
    async with listen() as events:
        (found, *_) = objects(await events.listed())
    assert isinstance(found, Nad)
    assert found.config == '{"type": "contrail-k8s-cni"}'
    assert found.annotations == {"opencontrail.org/cidr": "10.1.1.0/24"}
    assert str(uuid.UUID(found.uid)) == found.uid


async def test_a_nad_without_spec_config(folder: Path, listen: Listen) -> None:
    (folder / "nad.yaml").write_text("kind: NetworkAttachmentDefinition\nmetadata: {name: net-a}\n")
    async with listen() as events:
        (found, *_) = objects(await events.listed())
    assert isinstance(found, Nad)
    assert found.config is None


async def test_a_namespace_with_annotations(folder: Path, listen: Listen) -> None:
    (folder / "ns.yaml").write_text(namespace("shop", colour="blue"))
    async with listen() as events:
        assert await events.next() == Applied(Namespace(name="shop", annotations={"colour": "blue"}))


async def test_other_kinds_are_ignored(folder: Path, listen: Listen) -> None:
    kinds = ("v1 Service", "apps/v1 Deployment", "v1 PodTemplate", "metrics.k8s.io/v1 Pod", "other.io/v1 Namespace")
    documents = [
        f"---\napiVersion: {kind.split()[0]}\nkind: {kind.split()[1]}\nmetadata: {{name: x}}\n" for kind in kinds
    ]
    (folder / "all.yaml").write_text("".join(documents) + pod("web"))
    async with listen() as events:
        assert summary(await events.listed()) == ["Applied Pod web", "Listed"]


async def test_empty_documents_and_files_are_ignored(folder: Path, listen: Listen) -> None:
    (folder / "a.yaml").write_text("---\n---\n# nothing\n---\n" + pod("web") + "---\n...\n")
    (folder / "b.yaml").write_text("")
    (folder / "c.json").write_text(" \n")
    (folder / "d.yaml").write_bytes(b"\xef\xbb\xbf" + pod("bom").encode())
    async with listen() as events:
        assert summary(await events.listed()) == ["Applied Pod web", "Applied Pod bom", "Listed"]


@pytest.mark.parametrize("name", ["list.yaml", "list.json"])
async def test_each_item_of_a_list_is_an_object(name: str, folder: Path, listen: Listen) -> None:
    items = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db", "namespace": "shop"}},
    ]
    (folder / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    async with listen() as events:
        assert summary(await events.listed()) == ["Applied Pod web", "Applied Pod db", "Listed"]


async def test_subfolders_are_read_but_not_hidden_or_other_files(folder: Path, listen: Listen) -> None:
    for path in ("a/b/deep.yaml", "a/.hidden.yaml", ".git/x.yaml", "notes.txt", "web.yaml.bak", "a/upper.YAML"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(pod(Path(path).name.split(".")[0] or "hidden"))
    async with listen() as events:
        assert summary(await events.listed()) == ["Applied Pod deep", "Listed"]


async def test_a_new_file_is_delivered(folder: Path, listen: Listen) -> None:
    async with listen() as events:
        await events.listed()
        (folder / "pod.yaml").write_text(pod("web"))
        assert summary([await events.next()]) == ["Applied Pod web"]


async def test_a_file_in_a_new_subfolder_is_delivered(folder: Path, listen: Listen) -> None:
    async with listen() as events:
        await events.listed()
        (folder / "a/b").mkdir(parents=True)
        (folder / "a/b/pod.yaml").write_text(pod("web"))
        assert summary([await events.next()]) == ["Applied Pod web"]


async def test_simultaneous_objects_are_delivered_networks_first(folder: Path, listen: Listen) -> None:
    async with listen() as events:
        await events.listed()
        (folder / "a.yaml").write_text(pod("web") + nad("net-a") + namespace("shop"))
        received = [await events.next() for _ in range(3)]
        assert summary(received) == ["Applied Namespace shop", "Applied Nad net-a", "Applied Pod web"]
