"""A machine with manifests whose store is a Contrail API server: one process, without a cluster."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from manager.parsing.network_reference import NETWORK_KEY
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import DOMAIN, Caller, Made, subnet
from tests.support.datapath_node import DatapathNode, datapath_node
from tests.support.echo import reaches
from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write
from tests.support.upstream_kube_manager import UpstreamKubeManager

NODE = "edge-1"
INTERFACE = "virtual-machine-interface"
EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def make_node(stack: ExitStack, folder: Path, url: str, *, name: str = NODE) -> EmbeddedProcess:
    folder.mkdir(exist_ok=True)
    file = folder / "manager.yaml"
    file.write_text(json.dumps(configuration(url, node=name)))  # JSON is YAML
    node = EmbeddedProcess(folder, options=["--config", str(file)])
    stack.callback(lambda: node.kill() if node.is_running else None)
    return node


def configuration(url: str, *, node: str = NODE) -> dict[str, Any]:
    return {"node": node, "store": {"kind": "vnc", "url": url}}


@pytest.fixture
def node(contrail: ContrailApi, tmp_path: Path, stack: ExitStack) -> EmbeddedProcess:
    """With the manifests of a network and a pod; not started."""
    node = make_node(stack, tmp_path / "first", contrail.url)
    write(node.manifests / "all.yaml", nad("blue", cidr="10.1.0.0/24"), pod("web", networks="blue"))
    return node


def served(node: EmbeddedProcess, name: str = "web") -> list[Any]:
    """What the agent answers about a pod."""
    return node.get(f"/vm-cfg/k8s__demo__{name}") or []


def objects(contrail: ContrailApi, kind: str) -> dict[str, Any]:
    """The server's objects of a type by uuid."""
    return dict(contrail.database.of_kind(KINDS[kind]))


async def await_served(node: EmbeddedProcess, number: int) -> None:
    await asyncio.to_thread(node.wait_until, lambda: len(served(node)) == number, what=f"serving {number} interfaces")


async def test_pods_are_on_the_server_and_served_by_the_agent(node: EmbeddedProcess, contrail: ContrailApi) -> None:
    await asyncio.to_thread(node.start)
    await await_served(node, 2)
    (machine,) = objects(contrail, "virtual-machine").values()
    assert machine.fq_name == ("k8s__demo__web",)
    assert len(objects(contrail, "virtual-machine-interface")) == 2
    addresses = {each.properties["instance_ip_address"] for each in objects(contrail, "instance-ip").values()}
    assert {each["ip-address"] for each in served(node)} == addresses
    (node.manifests / "all.yaml").unlink()
    await asyncio.to_thread(
        node.wait_until, lambda: not objects(contrail, "virtual-machine-interface"), what="deleting the pod"
    )
    assert await asyncio.to_thread(node.stop) == 0


@pytest.mark.parametrize("end", [EmbeddedProcess.stop, EmbeddedProcess.kill])
async def test_pods_keep_everything_over_a_restart(node: EmbeddedProcess, contrail: ContrailApi, end: Any) -> None:
    await asyncio.to_thread(node.start)
    await await_served(node, 2)
    before = {kind: set(objects(contrail, kind)) for kind in ("virtual-machine", "instance-ip", "virtual-network")}
    interfaces = served(node)
    await asyncio.to_thread(end, node)
    await asyncio.to_thread(node.start)
    await await_served(node, 2)
    assert served(node) == interfaces
    assert {kind: set(objects(contrail, kind)) for kind in before} == before


async def test_the_pods_of_the_demo_get_what_they_get_from_the_file(
    contrail: ContrailApi, tmp_path: Path, stack: ExitStack
) -> None:
    (tmp_path / "file").mkdir()
    on_file = EmbeddedProcess(tmp_path / "file")
    stack.callback(lambda: on_file.kill() if on_file.is_running else None)
    on_server = make_node(stack, tmp_path / "server", contrail.url)
    seen = []
    for node in (on_file, on_server):
        shutil.copytree(EXAMPLES, node.manifests, dirs_exist_ok=True)
        await asyncio.to_thread(node.start)
        states = await asyncio.to_thread(node.pod_states)
        assert set(states.values()) == {"Ready"}
        seen.append({pod: await asyncio.to_thread(summary, node, *pod.split("/")) for pod in states})
        assert await asyncio.to_thread(node.stop) == 0
    assert seen[0] == seen[1]
    assert len(seen[1]) >= 4


def summary(node: EmbeddedProcess, namespace: str, name: str) -> list[tuple[Any, ...]]:
    """What the agent answers about a pod, without what is derived from its uid."""
    return [
        (
            each["vn-name"],
            each.get("ip-address"),
            each.get("v6-ip-address"),
            sorted(map(index_and_network, each["annotations"])),
        )
        for each in node.get(f"/vm-cfg/k8s__{namespace}__{name}")
    ]


def index_and_network(text: str) -> str:
    """Returns an annotation if it is one of these two."""
    return text if text.startswith(("{index:", "{network:")) else ""


async def test_a_virtual_machine_that_somebody_deletes_is_written_again(
    node: EmbeddedProcess, contrail: ContrailApi, caller: Caller
) -> None:
    await asyncio.to_thread(node.start)
    await await_served(node, 2)
    (uid,) = objects(contrail, "virtual-machine")
    removal = {"uuid": uid, "updates": [{"field": "annotations", "operation": "delete", "position": "machine"}]}
    assert (await caller.post("/prop-collection-update", removal)).status == 200

    def is_whole() -> bool:
        pairs = objects(contrail, "virtual-machine")[uid].properties["annotations"]["key_value_pair"]
        return "machine" in {pair["key"] for pair in pairs} and len(served(node)) == 2

    await asyncio.to_thread(node.wait_until, is_whole, what="writing it again")


async def test_addresses_of_a_pod_that_somebody_deleted_while_no_manager_ran_are_held(
    node: EmbeddedProcess, contrail: ContrailApi, caller: Caller
) -> None:
    await asyncio.to_thread(node.start)
    await await_served(node, 2)
    await asyncio.to_thread(node.kill)
    write(node.manifests / "all.yaml", nad("blue", cidr="10.1.0.0/24"))
    addresses = set(objects(contrail, "instance-ip"))
    for interface in [Made(INTERFACE, uuid, []) for uuid in objects(contrail, INTERFACE)]:
        for uuid in addresses:
            await caller.refer(Made("instance-ip", uuid, []), interface, "DELETE")
        assert (await caller.delete(interface)).status == 200
    (machine,) = objects(contrail, "virtual-machine")
    assert (await caller.delete(Made("virtual-machine", machine, []))).status == 200
    await asyncio.to_thread(node.start)

    def are_released() -> bool:
        return all("held-until" in str(each.properties) for each in objects(contrail, "instance-ip").values())

    await asyncio.to_thread(node.wait_until, are_released, what="releasing the addresses")
    assert set(objects(contrail, "instance-ip")) == addresses


async def test_known_pods_are_served_while_the_server_is_away_and_the_node_says_so(
    node: EmbeddedProcess, contrail: ContrailApi
) -> None:
    await asyncio.to_thread(node.start)
    await await_served(node, 2)
    await contrail.stop()

    def is_named() -> bool:
        status, answer = node.ask("/readyz")
        return status == 503 and "Contrail API server: " in str(answer)

    await asyncio.to_thread(node.wait_until, is_named, what="naming the server")
    assert len(await asyncio.to_thread(served, node)) == 2
    await contrail.start()
    await asyncio.to_thread(node.wait_until_ready)


async def test_nothing_is_served_before_the_server_was_read(node: EmbeddedProcess, contrail: ContrailApi) -> None:
    """An empty list would have the datapath remove what running pods use."""
    await contrail.stop()
    await asyncio.to_thread(node.launch)
    await asyncio.to_thread(
        node.wait_until, lambda: "Contrail API server: " in str(node.ask("/readyz")[1]), what="naming the server"
    )
    assert "not listed yet" in str((await asyncio.to_thread(node.ask, "/readyz"))[1])
    await contrail.start()
    await asyncio.to_thread(node.wait_until_ready)
    await await_served(node, 2)


@pytest.mark.parametrize(("namespace", "state"), [("demo", "Ready"), ("elsewhere", "Waiting"), ("dem", "Waiting")])
async def test_networks_of_others_may_be_named_in_projects_of_namespaces_that_have_manifests(
    node: EmbeddedProcess, contrail: ContrailApi, caller: Caller, namespace: str, state: str
) -> None:
    """A namespace needs no manifest of its own."""
    project = await caller.create("project", fq_name=[DOMAIN, f"k8s-{namespace}"], parent_type="domain")
    network = await caller.network(subnet("10.9.0.0/24"), project=project)
    named = dict(zip(("domain", "project", "name"), network.fq_name, strict=True))
    write(node.manifests / "web.yaml", pod("guest", **{NETWORK_KEY: json.dumps(named)}))
    await asyncio.to_thread(node.start)
    await asyncio.to_thread(
        node.wait_until, lambda: node.pod_states() == {"demo/web": "Ready", "demo/guest": state}, what=f"state {state}"
    )
    interfaces = objects(contrail, INTERFACE).values()
    assert [each.only("virtual-network") for each in interfaces].count(network.uuid) == (state == "Ready")


async def test_a_second_machine_of_the_cluster_name_does_not_start(
    node: EmbeddedProcess, contrail: ContrailApi, tmp_path: Path, stack: ExitStack
) -> None:
    """It would delete the pods of the first one, of which it has no manifests."""
    await asyncio.to_thread(node.start)
    await await_served(node, 2)
    second = make_node(stack, tmp_path / "second", contrail.url, name="edge-2")
    second.launch()
    assert await asyncio.to_thread(second.ended) == 1
    last = second.log.read_text().splitlines()[-1]
    assert "k8s has pods of other nodes than edge-2 (k8s__demo__web on edge-1): give each machine" in last
    assert len(objects(contrail, "virtual-machine-interface")) == 2


async def test_a_pod_of_another_program_ends_the_process(
    node: EmbeddedProcess, contrail: ContrailApi, caller: Caller
) -> None:
    await asyncio.to_thread(node.start)
    upstream = UpstreamKubeManager(caller)
    network = await upstream.nad_network("net-a", "10.9.0.0/24", "10.9.0.254")
    await upstream.pod("theirs", [("default", network)], router=None)
    assert await asyncio.to_thread(node.ended) == 1
    assert "(k8s__default__theirs)" in node.log.read_text().splitlines()[-1]


async def test_the_kernel_connects_pods(contrail: ContrailApi) -> None:
    assert await asyncio.to_thread(unreached, contrail.url) == []


def unreached(url: str) -> list[str]:
    """Attaches two pods to a node, and returns the addresses of the second that the first does not reach."""
    with (
        datapath_node(configuration(url), servers=[url]) as node,
        node.attached("a") as first,
        node.attached("b") as second,
    ):
        wanted = [*second.addresses, *index_0(node, "b")]
        assert len(wanted) == 3
        return [address for address in wanted if not reaches(first.namespace, address)]


def index_0(node: DatapathNode, name: str) -> list[str]:
    interfaces = node.manager.get(f"/vm-cfg/k8s__demo__{name}")
    assert interfaces is not None
    return [interfaces[0]["ip-address"]]
