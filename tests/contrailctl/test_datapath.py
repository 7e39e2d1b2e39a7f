"""`contrailctl get datapath` and the port's state of `describe pod`, from a real agent."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_api.datapath.kind import Datapath
from agent_api.datapath.linux_datapath import Spanning
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from contrailctl.datapath import MAX_AGE, DatapathStatus, PortCondition
from tests.support.contrailctl_command import Run
from tests.support.served_agent import ServedAgent, port_of, serve_agent, until
from tests.support.slices import SlicesInMemory
from tests.support.virtual_machines import NODE, left_interface, make_virtual_machine, pod_interface

UID = "d8b4a3f0-1d1c-4f0a-9d54-0d2f6f4a1c12"
VNI = 4711


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "store.db")
    yield store
    await store.close()


@pytest.fixture
async def linux_agent(store: SqliteStore, tmp_path: Path) -> AsyncIterator[ServedAgent]:
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as served:
        yield served


@pytest.fixture
def pod() -> VirtualMachine:
    left = msgspec.structs.replace(left_interface(UID, 1), vni=VNI)
    return make_virtual_machine("web", uid=UID, interfaces=(pod_interface(UID), left))


async def plug(served: ServedAgent, store: SqliteStore, pod: VirtualMachine, *indexes: int) -> None:
    """Stores the pod, plugs ports, and reads the desired state as the process that programs the kernel does."""
    await store.put_virtual_machine(pod)
    ports = [port_of(UID, pod.interfaces[index].uuid, host_ifname=f"tap{index}") for index in indexes]
    async with served.unix.post("/vm", json=ports) as answer:
        assert answer.status == 200
    await until(lambda: served.agent.virtual_machines.by_uuid(UID))
    async with served.unix.get("/datapath", params={"wait": "5"}) as answer:
        assert answer.status == 200


async def report(served: ServedAgent, **fields: Any) -> None:
    body = {"version": "v", "changes": 0, "repaired": 0, "seconds": 0.1, **fields}
    async with served.unix.post("/datapath", params={"follower": "contrail-cnid-1"}, json=body) as answer:
        assert answer.status == 200


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


async def test_networks_of_the_node_are_listed_with_ports_drops_and_problems(
    contrailctl: Run, linux_agent: ServedAgent, store: SqliteStore, pod: VirtualMachine
) -> None:
    await plug(linux_agent, store, pod, 0, 1)
    drops = {"0": {"spoofing": 1, "tunnel": 2}, str(VNI): {"spoofing": 3, "broadcast": 4, "mtu": 5}}
    await report(linux_agent, missing={str(VNI): ["tap1"]}, problems={str(VNI): "no bridge"}, drops=drops)
    ended = await contrailctl("--agent", f"http://{linux_agent.address}", "get", "datapath")
    assert (ended.status, ended.err) == (0, "")
    name = ":".join(pod.interfaces[1].network)
    assert rows(ended.out) == [
        ["VNI", "NETWORK", "PORTS", "MISSING", "SPOOFING", "BROADCAST", "TUNNEL", "MTU", "PROBLEM"],
        ["0", "index", "0,", "routed", "1", "-", "1", "0", "2", "-", "-"],
        [str(VNI), name, "1", "tap1", "3", "4", "-", "5", "no", "bridge"],
        [],
        ["programmed", "by:", "contrail-cnid-1"],
    ]


async def test_json_has_the_networks_and_the_age_of_the_report(
    contrailctl: Run, linux_agent: ServedAgent, store: SqliteStore, pod: VirtualMachine
) -> None:
    await plug(linux_agent, store, pod, 1)
    await report(linux_agent)
    ended = await contrailctl("--agent", f"http://{linux_agent.address}", "get", "datapath", "-o", "json")
    document = json.loads(ended.out)
    name = ":".join(pod.interfaces[1].network)
    assert document["items"] == [
        {"vni": VNI, "network": name, "ports": 1, "missing": [], "problem": None, "drops": None}
    ]
    assert document["age"] >= 0
    assert document["follower"] == "contrail-cnid-1"


async def test_networks_that_share_a_vni_are_listed_with_both_names(
    contrailctl: Run, linux_agent: ServedAgent, store: SqliteStore, pod: VirtualMachine
) -> None:
    red = msgspec.structs.replace(pod.interfaces[1], network=("domain", "project", "red"), network_uuid=UID)
    other_uid = "d8b4a3f0-1d1c-4f0a-9d54-0d2f6f4a1c13"
    red = msgspec.structs.replace(red, uuid=other_uid, mac="02:00:00:00:00:77", addresses=())
    other = make_virtual_machine("other", uid=other_uid, interfaces=(pod_interface(other_uid), red))
    await store.put_virtual_machine(other)
    await until(lambda: linux_agent.agent.virtual_machines.by_uuid(other_uid))
    await plug(linux_agent, store, pod, 1)
    await report(linux_agent)
    agent = f"http://{linux_agent.address}"
    ended = await contrailctl("--agent", agent, "get", "datapath", "-o", "json")
    document = json.loads(ended.out)
    assert document["items"] == []
    name = ":".join(pod.interfaces[1].network)
    messages = {
        ":".join(name): f"network {':'.join(name)}: not connected: VNI {VNI} is also that of {other}"
        for name, other in ((pod.interfaces[1].network, "domain:project:red"), (red.network, name))
    }
    assert {":".join(each["network"]): each["message"] for each in document["refused"]} == messages
    ended = await contrailctl("--agent", agent, "describe", "pod", "default/web")
    assert f"    Port:            Problem: {messages[name]}\n" in ended.out
    ended = await contrailctl("--agent", agent, "get", "datapath")
    assert rows(ended.out)[-4:-2] == [[str(VNI), each, *messages[each].split()] for each in sorted(messages)]


async def test_subnets_without_a_route_are_listed_and_the_port_is_connected(
    contrailctl: Run, linux_agent: ServedAgent, store: SqliteStore, pod: VirtualMachine
) -> None:
    await plug(linux_agent, store, pod, 1)
    await report(linux_agent, refused=[{"vni": VNI, "subnet": "8.8.8.0/24", "reason": "not-allowed"}])
    agent = f"http://{linux_agent.address}"
    out = (await contrailctl("--agent", agent, "get", "datapath")).out
    assert rows(out)[-4][:3] == ["VNI", "REFUSED", "REASON"]
    assert rows(out)[-3][:2] == [str(VNI), "8.8.8.0/24"]
    assert "no route to 8.8.8.0/24: it is not in the agent's fabric-subnets\n" in out
    assert "Port:            Connected" in (await contrailctl("--agent", agent, "describe", "pod", "default/web")).out


async def test_silence_of_the_node_daemon_is_said_below_the_table(contrailctl: Run, linux_agent: ServedAgent) -> None:
    ended = await contrailctl("--agent", f"http://{linux_agent.address}", "get", "datapath")
    assert ended.status == 0
    assert ended.out.splitlines()[-2:] == [
        "programmed by: nothing",
        "nothing reported yet: contrail-cnid does not program the datapath",
    ]


async def test_a_node_that_does_not_learn_of_other_nodes_says_so_until_it_does(
    contrailctl: Run, store: SqliteStore, tmp_path: Path, pod: VirtualMachine
) -> None:
    slices = SlicesInMemory()
    slices.is_broken = True
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX, spanning=Spanning(slices, NODE, 4789)) as served:
        await store.put_virtual_machine(pod)
        await until(lambda: bool(served.agent.readiness()))
        reason = "network slices: watch failed: broken on purpose"
        get = "--agent", f"http://{served.address}", "get", "datapath"
        ended = await contrailctl(*get)
        assert ended.out.splitlines()[-1] == f"out of date: {reason}"
        slices.is_broken, slices.retried = False, ["networkslices: the server is silent"]
        await until(lambda: not served.agent.readiness())
        assert json.loads((await contrailctl(*get, "-o", "json")).out)["outdated"] == slices.retried
        slices.retried = []
        assert "out of date" not in (await contrailctl(*get)).out
        assert json.loads((await contrailctl(*get, "-o", "json")).out)["outdated"] == []


async def test_an_agent_without_a_linux_datapath_is_a_failure(contrailctl: Run, agent: str) -> None:
    ended = await contrailctl("--agent", agent, "get", "datapath")
    assert (ended.status, ended.err) == (1, f"contrailctl: {agent}: the node has no Linux datapath\n")


async def test_a_described_pod_has_the_state_of_its_ports(
    contrailctl: Run, linux_agent: ServedAgent, store: SqliteStore, pod: VirtualMachine
) -> None:
    await plug(linux_agent, store, pod, 0, 1)
    drops = {str(VNI): {"spoofing": 3, "broadcast": 4, "ports": {"tap1": 2, "tap9": 1}}}
    await report(linux_agent, drops=drops, counters={str(VNI): {"tap1": [12, 3456, 1, 60]}})
    described = "--agent", f"http://{linux_agent.address}", "describe", "pod", "default/web"
    text = (await contrailctl(*described)).out
    assert "\n    Host Interface:  tap0\n    Host Namespace:  the node's own\n    Port:            Connected\n" in text
    assert text.endswith(
        "\n    Host Interface:  tap1\n"
        f"    Host Namespace:  contrail-{VNI}\n"
        "    Port:            Connected\n"
        "    Sent:            12 packets, 3456 bytes\n"
        "    Received:        1 packets, 60 bytes\n"
        "    Port Drops:      2 spoofing\n"
        "    Network Drops:   3 spoofing, 4 broadcast, 0 MTU\n"
    )
    await report(linux_agent, missing={str(VNI): ["tap1"]}, problems={"0": "no route"})
    text = (await contrailctl(*described)).out
    assert "    Port:            Problem: no route\n" in text
    assert "    Port:            Missing: the host end does not exist\n" in text
    document = json.loads((await contrailctl(*described, "-o", "json")).out)
    left = document["ports"][pod.interfaces[1].uuid]
    assert (left["condition"], left["namespace"]) == ("Missing", f"contrail-{VNI}")
    counters = {"sent_packets": 12, "sent_bytes": 3456, "received_packets": 1, "received_bytes": 60}
    assert left["counters"] == counters  # what the host end has received, the pod has sent


async def test_a_port_is_not_called_connected_without_a_current_report(pod: VirtualMachine) -> None:
    left = pod.interfaces[1]
    unreported = DatapathStatus(networks={})
    assert unreported.port_state(1, left, "tap1").condition is PortCondition.UNKNOWN
    assert unreported.port_state(1, left, None).condition is PortCondition.NOT_PLUGGED
    late = DatapathStatus(networks={}, age=MAX_AGE + 1)
    assert late.port_state(1, left, "tap1").reason.startswith("nothing reported for 61 s")
    without_vni = msgspec.structs.replace(left, vni=0)
    assert late.port_state(1, without_vni, "tap1").reason == "its network has no VNI"
