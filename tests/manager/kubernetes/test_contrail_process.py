"""`contrail-manager` and `contrail-agent` as processes whose store is a Contrail API server."""

import asyncio
import json
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.cluster_objects import NODES, ClusterObjects
from tests.support.cluster_processes import AgentProcess, ManagerProcess, plain_kubeconfig
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made, subnet
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.free_port import free_port

NODE = "node-1"
NETWORKS = json.dumps([{"name": "left"}, {"name": "right", "interface": "tap1"}])


@pytest.fixture
async def router(caller: Caller) -> Made:
    """The virtual router of the node, as the site's provisioning makes it."""
    name = ["default-global-system-config", NODE]
    return await caller.create("virtual-router", fq_name=name, parent_type="global-system-config")


@pytest.fixture
def manager(
    server: FakeApiServer, contrail: ContrailApi, tmp_path: Path, killed_in_the_end: ExitStack
) -> ManagerProcess:
    return start_later(killed_in_the_end, manager_process(tmp_path / "manager", server, contrail.url))


def manager_process(folder: Path, server: FakeApiServer, url: str) -> ManagerProcess:
    folder.mkdir()
    return ManagerProcess(folder, plain_kubeconfig(folder, server.url), store={"kind": "vnc", "url": url})


def agent_process(folder: Path, url: str, **settings: Any) -> AgentProcess:
    """An agent that knows no Kubernetes API server."""
    store = {"kind": "vnc", "url": [url]}
    return AgentProcess(folder, folder / "no-kubeconfig", node=NODE, store=store, **settings)


P = TypeVar("P", ManagerProcess, AgentProcess)


def start_later(stack: ExitStack, process: P) -> P:
    stack.callback(lambda: process.kill() if process.is_running else None)
    return process


async def leading(manager: ManagerProcess) -> None:
    manager.launch()
    await asyncio.to_thread(manager.wait_until_it_leads)


def add_pod(objects: ClusterObjects) -> str:
    """Creates a pod with two attachments, and returns its uid."""
    objects.add_nad("left", cidr="10.1.0.0/24")
    objects.add_nad("right", cidr="10.2.0.0/24,fd00:2::/64")
    return objects.add_pod("web-0", networks=NETWORKS, node=NODE)


def annotations(item: dict[str, Any]) -> dict[str, str]:
    return {pair["key"]: pair["value"] for pair in item["annotations"]["key_value_pair"]}


async def interfaces_of(caller: Caller, uid: str) -> list[dict[str, Any]]:
    """The VMIs of a pod, by index."""
    listed = await caller.get("/virtual-machine-interfaces", back_ref_id=uid, detail="true")
    items = [item["virtual-machine-interface"] for item in listed["virtual-machine-interfaces"]]
    return sorted(items, key=lambda item: annotations(item)["index"])


async def test_a_pod_appears_as_the_kube_manager_of_contrail_would_write_it(
    manager: ManagerProcess, objects: ClusterObjects, caller: Caller, router: Made
) -> None:
    uid = add_pod(objects)
    await leading(manager)

    machine = (await caller.get(f"/virtual-machine/{uid}"))["virtual-machine"]
    assert (machine["fq_name"], machine["server_type"]) == (["k8s__blue__web-0"], "container")
    stated = {"kind": "Pod", "owner": "k8s", "cluster": "k8s", "namespace": "blue", "name": "web-0", "k8s_uuid": uid}
    assert stated.items() <= annotations(machine).items()
    assert [link["uuid"] for link in (await caller.read(router))["virtual_machine_refs"]] == [uid]

    interfaces = await interfaces_of(caller, uid)
    assert [annotations(item)["index"] for item in interfaces] == ["0/3", "1/3", "2/3"]
    assert [annotations(item)["network"] for item in interfaces] == ["default", "left", "right"]
    assert [annotations(item).get("interface") for item in interfaces] == [None, None, "tap1"]
    assert {tuple(item["fq_name"][:2]) for item in interfaces} == {("default-domain", "k8s-blue")}
    assert [item["fq_name"][2] for item in interfaces] == [f"web-0__{item['uuid']}" for item in interfaces]
    names = [item["virtual_network_refs"][0]["to"][2] for item in interfaces]
    assert names == ["k8s-default-pod-network", "k8s-left-pod-network", "k8s-right-pod-network"]

    addresses = [sorted(await addresses_of(caller, item["uuid"])) for item in interfaces]
    assert addresses == [["10.32.0.2"], ["10.1.0.2"], ["10.2.0.2", "fd00:2::2"]]
    assert await asyncio.to_thread(manager.stop) == 0
    assert " WARNING " not in manager.log.read_text()
    assert "Warning: " not in manager.log.read_text()


async def addresses_of(caller: Caller, interface: str) -> list[str]:
    listed = await caller.get("/instance-ips", back_ref_id=interface, fields="instance_ip_address")
    return [item["instance_ip_address"] for item in listed["instance-ips"]]


async def test_the_virtual_router_of_a_node_is_found_by_the_nodes_address(
    manager: ManagerProcess, server: FakeApiServer, objects: ClusterObjects, caller: Caller
) -> None:
    """Kubernetes and Contrail may name a host differently."""
    addresses = [{"type": "InternalIP", "address": "192.0.2.7"}]
    node = {"metadata": {"name": NODE, "uid": "node uid"}, "status": {"addresses": addresses}}
    server.storage.put(NODES, node)
    router = await caller.create(
        "virtual-router",
        fq_name=["default-global-system-config", "compute-7.example"],
        parent_type="global-system-config",
        virtual_router_ip_address="192.0.2.7",
    )
    uid = add_pod(objects)
    await leading(manager)
    assert [link["uuid"] for link in (await caller.read(router))["virtual_machine_refs"]] == [uid]


async def test_nothing_of_a_cluster_with_our_own_store_is_needed_or_made(
    manager: ManagerProcess, server: FakeApiServer, objects: ClusterObjects, caller: Caller
) -> None:
    add_pod(objects)
    await leading(manager)
    requests = " ".join(server.requests)
    for plural in ("virtualmachines", "virtualnetworks", "addressblocks", "networkslices", "contrailnodes"):
        assert plural not in requests
    assert not any(name.startswith("contrail-nodes-") for name in requests.split())


async def test_an_agent_serves_the_pods_of_its_node_and_forgets_deleted_ones(
    manager: ManagerProcess,
    objects: ClusterObjects,
    contrail: ContrailApi,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    add_pod(objects)
    objects.add_pod("elsewhere", node="node-2")
    await leading(manager)
    agent = start_later(killed_in_the_end, agent_process(tmp_path / "agent", contrail.url))
    await asyncio.to_thread(agent.start)
    served = await asyncio.to_thread(agent.interfaces, "blue", "web-0", wait=10)
    assert [one["annotations"]["index"] for one in map(with_annotations, served)] == ["0/3", "1/3", "2/3"]
    assert [one["ip-address"] for one in served][1:] == ["10.1.0.2", "10.2.0.2"]
    assert not await asyncio.to_thread(agent.interfaces, "blue", "elsewhere")

    objects.end_pod("web-0")
    objects.remove_pod("web-0")
    await asyncio.to_thread(agent.wait_until, lambda: not agent.interfaces("blue", "web-0"), what="forgetting")
    assert await asyncio.to_thread(agent.stop) == 0
    assert "Warning: " not in agent.log.read_text()


def with_annotations(item: dict[str, Any]) -> dict[str, Any]:
    pairs = (text.strip("{}").split(":", 1) for text in item["annotations"])
    return {**item, "annotations": dict(pairs)}


async def test_a_second_manager_takes_over_what_the_first_one_wrote(
    manager: ManagerProcess,
    server: FakeApiServer,
    objects: ClusterObjects,
    contrail: ContrailApi,
    caller: Caller,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    uid = add_pod(objects)
    await leading(manager)
    before = await interfaces_of(caller, uid)
    await asyncio.to_thread(manager.stop)
    written = len([each for each in contrail.requests if each.startswith("POST /virtual-machine")])

    second = start_later(killed_in_the_end, manager_process(tmp_path / "second", server, contrail.url))
    await leading(second)
    assert await interfaces_of(caller, uid) == before
    assert len([each for each in contrail.requests if each.startswith("POST /virtual-machine")]) == written


async def test_a_leader_frees_addresses_whose_hold_has_ended(
    manager: ManagerProcess, contrail: ContrailApi, caller: Caller
) -> None:
    """Such as those of a manager that ended before."""
    network = await caller.network(subnet("10.9.0.0/24"))
    stated = {"cluster": "k8s", "owner-uuid": "a", "held-until": "1.0"}
    pairs = [{"key": key, "value": value} for key, value in stated.items()]
    held = await caller.create(
        "instance-ip",
        fq_name=["held"],
        virtual_network_refs=[network.reference],
        instance_ip_address="10.9.0.9",
        annotations={"key_value_pair": pairs},
    )
    manager.launch()
    await asyncio.to_thread(
        manager.wait_until, lambda: held.uuid not in contrail.database.objects, what="freeing the address"
    )


async def write_as_kube_manager(caller: Caller, cluster: str = "k8s") -> Made:
    """A virtual machine as Contrail's kube-manager writes it: the annotations in a second request."""
    name = [f"{cluster}__shop__theirs"]
    machine = await caller.create("virtual-machine", fq_name=name, server_type="container")
    stated = {"kind": "Pod", "owner": "k8s", "cluster": cluster, "project": f"{cluster}-shop", "labels": "{}"}
    updates = [
        {"field": "annotations", "operation": "set", "value": {"key": key, "value": value}}
        for key, value in stated.items()
    ]
    answer = await caller.post("/prop-collection-update", {"uuid": machine.uuid, "updates": updates})
    assert answer.status == 200
    return machine


async def test_a_manager_refuses_to_start_beside_the_kube_manager_of_contrail(
    manager: ManagerProcess, caller: Caller, objects: ClusterObjects
) -> None:
    add_pod(objects)
    await write_as_kube_manager(caller)
    manager.launch()
    assert await asyncio.to_thread(manager.ended) == 1
    last = manager.log.read_text().splitlines()[-1]
    assert last.startswith("contrail-manager: Contrail API server: another program, such as Contrail's kube-manager,")
    assert "(k8s__shop__theirs)" in last
    assert not (await caller.get("/virtual-machine-interfaces"))["virtual-machine-interfaces"]


async def test_a_manager_ends_when_the_kube_manager_of_contrail_begins_to_write(
    manager: ManagerProcess, caller: Caller, objects: ClusterObjects
) -> None:
    add_pod(objects)
    await leading(manager)
    theirs = await write_as_kube_manager(caller, cluster="other")
    assert manager.is_running
    await caller.delete(theirs)
    await write_as_kube_manager(caller)
    assert await asyncio.to_thread(manager.ended) == 1
    assert "(k8s__shop__theirs)" in manager.log.read_text().splitlines()[-1]


async def test_a_leader_is_not_ready_while_the_contrail_api_server_is_away(
    manager: ManagerProcess, contrail: ContrailApi, objects: ClusterObjects, caller: Caller
) -> None:
    await leading(manager)
    await contrail.stop()
    await until_readiness_names(manager, "Contrail API server: ")
    uid = add_pod(objects)
    await contrail.start()
    await asyncio.to_thread(manager.wait_until_ready)
    await asyncio.to_thread(
        manager.wait_until,
        lambda: [one["state"] for one in manager.items("pods")] == ["Ready"],
        what="writing what was missed",
    )
    assert len(await interfaces_of(caller, uid)) == 3


async def test_an_agent_starts_without_the_server_and_serves_known_pods_while_it_is_away(
    manager: ManagerProcess,
    objects: ClusterObjects,
    contrail: ContrailApi,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    add_pod(objects)
    await leading(manager)
    await contrail.stop()
    agent = start_later(killed_in_the_end, agent_process(tmp_path / "agent", contrail.url))
    agent.launch()
    await until_readiness_names(agent, f"127.0.0.1:{contrail.port}")
    await contrail.start()
    await asyncio.to_thread(agent.wait_until_ready)
    await contrail.stop()
    await until_readiness_names(agent, "Contrail API server: ")
    assert len(await asyncio.to_thread(agent.interfaces, "blue", "web-0")) == 3


async def until_readiness_names(process: ManagerProcess | AgentProcess, text: str) -> None:
    def named() -> bool:
        status, answer = process.ask("/readyz")
        return status == 503 and text in str(answer["reasons"])

    await asyncio.to_thread(process.wait_until, named, what=f"naming {text!r}")


async def test_requests_to_the_contrail_api_server_are_measured(
    manager: ManagerProcess,
    objects: ClusterObjects,
    contrail: ContrailApi,
    tmp_path: Path,
    killed_in_the_end: ExitStack,
) -> None:
    add_pod(objects)
    await leading(manager)
    agent = start_later(killed_in_the_end, agent_process(tmp_path / "agent", contrail.url))
    await asyncio.to_thread(agent.start)
    for process, prefix in ((manager, "contrail_manager"), (agent, "contrail_agent")):
        text = await asyncio.to_thread(metrics_of, process)
        assert f'{prefix}_contrail_api_requests_total{{method="WATCH",status="200"}}' in text
        assert f'{prefix}_contrail_watch_age_seconds{{resource="virtual-machine"}}' in text


def metrics_of(process: ManagerProcess | AgentProcess) -> str:
    with urllib.request.urlopen(f"http://{process.listen}/metrics", timeout=5) as response:
        return str(response.read().decode())


async def test_a_manager_whose_password_file_is_missing_names_key_and_file(
    server: FakeApiServer, tmp_path: Path, killed_in_the_end: ExitStack
) -> None:
    absent = tmp_path / "absent"
    url = f"http://127.0.0.1:{free_port()}"
    store = {"kind": "vnc", "url": url, "basic": {"user": "admin", "password-file": str(absent)}}
    kubeconfig = plain_kubeconfig(tmp_path, server.url)
    manager = start_later(killed_in_the_end, ManagerProcess(tmp_path / "manager", kubeconfig, store=store))
    manager.launch()
    assert await asyncio.to_thread(manager.ended) == 2
    last = manager.log.read_text().splitlines()[-1]
    assert last == f"contrail-manager: store.basic.password-file: {absent}: No such file or directory"
