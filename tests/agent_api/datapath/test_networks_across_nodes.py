"""Networks across nodes in a running agent: what it serves of other nodes, and pods that wait for their networks."""

import asyncio
from typing import Any

import msgspec
import pytest

from agent_api.datapath import linux_datapath
from agent_api.datapath.kind import Datapath
from agent_api.datapath.linux_datapath import Spanning
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import Endpoint, ForwardingMode, NetworkSlice, VirtualMachine, VirtualMachineInterface
from tests.agent_api.conftest import StartAgent
from tests.support.served_agent import ServedAgent, port_of, until
from tests.support.slices import SlicesInMemory
from tests.support.virtual_machines import NODE, SAMPLE_VM, left_interface, make_virtual_machine, pod_interface

BLUE_VNI, PODS_VNI = 5, 1
Object = dict[str, Any]


def make_pod() -> VirtualMachine:
    """A pod in the pod network and in one other network."""
    first, second = pod_interface(SAMPLE_VM), left_interface(SAMPLE_VM, 1)
    interfaces = (
        msgspec.structs.replace(first, vni=PODS_VNI, mtu=1450),
        msgspec.structs.replace(second, vni=BLUE_VNI, mtu=1450),
    )
    return make_virtual_machine(uid=SAMPLE_VM, interfaces=interfaces)


POD = make_pod()
PODS, BLUE = POD.interfaces


def make_slice(interface: VirtualMachineInterface, node: str, tunnel: str, **fields: object) -> NetworkSlice:
    made = NetworkSlice(interface.network_uuid, node, interface.network, interface.vni, tunnel=(tunnel,))
    return msgspec.structs.replace(made, **fields)


def routed(node: str, tunnel: str, *blocks: str, own: str) -> NetworkSlice:
    return make_slice(PODS, node, tunnel, forwarding_mode=ForwardingMode.L3, blocks=blocks, node_addresses=(own,))


@pytest.fixture
def slices() -> SlicesInMemory:
    """Slices of this node and another one."""
    slices = SlicesInMemory()
    slices.put(routed(NODE, "192.0.2.1", "10.32.0.0/26", own="10.32.0.2"))
    slices.put(routed("other", "192.0.2.2", "10.32.0.64/26", own="10.32.0.64"))
    slices.put(make_slice(BLUE, NODE, "192.0.2.1", endpoints=(Endpoint(BLUE.mac, ("10.1.1.11",)).text,)))
    slices.put(make_slice(BLUE, "other", "192.0.2.2", endpoints=(Endpoint("02:00:00:00:00:07", ("10.1.1.7",)).text,)))
    return slices


@pytest.fixture
async def linux(start_agent: StartAgent, slices: SlicesInMemory) -> ServedAgent:
    return await start_agent(datapath=Datapath.LINUX, spanning=Spanning(slices, NODE, 4789))


async def get(served: ServedAgent, **parameters: str) -> Object:
    async with served.unix.get("/datapath", params={"wait": "5", **parameters}) as answer:
        assert answer.status == 200
        content: Object = await answer.json()
    return content


async def complete(served: ServedAgent) -> Object:
    """The state once both networks are complete."""
    state = await get(served)
    while not (state["networks"] and is_complete(state["networks"][0]) and is_complete(state.get("routed-network"))):
        state = await get(served, version=state["version"])
    return state


def is_complete(network: Object | None) -> bool:
    return network is not None and network.get("complete", True)


async def report(served: ServedAgent, version: str, **fields: object) -> None:
    body = {"version": version, "changes": 0, "repaired": 0, "seconds": 0.01, **fields}
    async with served.unix.post("/datapath", params={"follower": "test-1"}, json=body) as answer:
        assert answer.status == 200


async def vm_cfg(served: ServedAgent, *, wait: str) -> tuple[int, Any]:
    async with served.unix.get(f"/vm-cfg/{POD.name}", params={"wait": wait}) as answer:
        return answer.status, await answer.json()


async def test_what_other_nodes_have_is_served(store: SqliteStore, linux: ServedAgent) -> None:
    await store.put_virtual_machine(POD)
    state = await complete(linux)
    assert state["tunnel"] == {"addresses": ["192.0.2.1"], "port": 4789}
    async with linux.unix.get("/metrics") as answer:
        metrics = await answer.text()
    assert "contrail_agent_datapath_remotes 2.0" in metrics
    assert "contrail_agent_datapath_incomplete 0.0" in metrics
    assert state["nodes"] == [{"name": "other", "addresses": ["192.0.2.2"]}]
    assert state["networks"][0]["remotes"] == [
        {"mac": "02:00:00:00:00:07", "addresses": ["10.1.1.7"], "tunnel": "192.0.2.2"}
    ]
    assert state["routed-network"] == {
        "vni": PODS_VNI,
        "mtu": 1450,
        "own-blocks": ["10.32.0.0/26"],
        "remotes": [{"cidr": "10.32.0.64/26", "tunnel": "192.0.2.2"}],
        "addresses": ["10.32.0.2"],
        "node-addresses": [{"address": "10.32.0.64", "tunnel": "192.0.2.2"}],
    }


async def test_a_change_on_another_node_is_served(
    store: SqliteStore, linux: ServedAgent, slices: SlicesInMemory
) -> None:
    await store.put_virtual_machine(POD)
    state = await complete(linux)
    slices.put(make_slice(BLUE, "other", "192.0.2.9"))
    changed = await get(linux, version=state["version"])
    assert "remotes" not in changed["networks"][0]


async def test_a_pod_whose_number_is_not_that_of_its_network_is_refused(
    store: SqliteStore, linux: ServedAgent, slices: SlicesInMemory
) -> None:
    await store.put_virtual_machine(POD)
    state = await complete(linux)
    slices.put(make_slice(msgspec.structs.replace(BLUE, vni=9), NODE, "192.0.2.1"))
    changed = await get(linux, version=state["version"])
    assert changed["networks"] == []
    await report(linux, changed["version"])
    _, (index_0, index_1) = await vm_cfg(linux, wait="5")
    assert "refused" not in index_0
    assert "pods with VNI 5 are not connected: the network has VNI 9 now" in index_1["refused"]
    async with linux.unix.get("/datapath/report") as answer:
        (refused,) = (await answer.json())["refused"]
    assert (tuple(refused["network"]), refused["reason"]) == (BLUE.network, "other-vni")


async def test_networks_of_pods_that_are_gone_are_not_followed(
    store: SqliteStore, linux: ServedAgent, slices: SlicesInMemory
) -> None:
    await store.put_virtual_machine(POD)
    await complete(linux)
    assert len(slices.watched) == 2
    await store.delete_virtual_machine(POD.uuid)
    await until(lambda: slices.watched == [])


async def test_networks_are_incomplete_until_their_slices_are_listed(
    store: SqliteStore, start_agent: StartAgent, slices: SlicesInMemory
) -> None:
    slices.is_hung = True
    linux = await start_agent(datapath=Datapath.LINUX, spanning=Spanning(slices, NODE, 4789))
    await store.put_virtual_machine(POD)
    state = await get(linux)
    while not state["networks"]:
        state = await get(linux, version=state["version"])
    assert state["networks"][0]["complete"] is False
    assert state["routed-network"]["complete"] is False
    slices.end_lists()
    await complete(linux)


async def test_a_pod_waits_for_its_networks(
    store: SqliteStore, start_agent: StartAgent, slices: SlicesInMemory
) -> None:
    slices.is_hung = True
    linux = await start_agent(datapath=Datapath.LINUX, spanning=Spanning(slices, NODE, 4789))
    await store.put_virtual_machine(POD)
    status, answer = await vm_cfg(linux, wait="0.2")
    assert (status, answer["reason"]) == (404, "NetworkIncomplete")
    assert "not connected to other nodes yet" in answer["message"]
    waiting = asyncio.create_task(vm_cfg(linux, wait="5"))
    await until(lambda: len(linux.agent.virtual_machines.waiters) == 1)
    slices.end_lists()
    await report(linux, (await complete(linux))["version"])
    status, answer = await waiting
    assert (status, len(answer)) == (200, 2)


async def test_a_pod_waits_until_what_its_networks_have_is_programmed(store: SqliteStore, linux: ServedAgent) -> None:
    await report(linux, (await get(linux))["version"])
    await store.put_virtual_machine(POD)
    state = await complete(linux)
    assert (await vm_cfg(linux, wait="0.05"))[0] == 404
    waiting = asyncio.create_task(vm_cfg(linux, wait="5"))
    await until(lambda: len(linux.agent.virtual_machines.waiters) == 1)
    await report(linux, state["version"])
    assert (await waiting)[0] == 200


@pytest.mark.parametrize(("vni", "name"), [(BLUE_VNI, BLUE.network[-1]), (0, PODS.network[-1])])
async def test_a_pod_waits_while_a_network_of_it_cannot_be_connected(
    store: SqliteStore, linux: ServedAgent, vni: int, name: str
) -> None:
    await store.put_virtual_machine(POD)
    version = (await complete(linux))["version"]
    await report(linux, version, problems={str(vni): "create tunnel: File exists"}, unconnected=[vni])
    status, answer = await vm_cfg(linux, wait="0.05")
    assert (status, answer["reason"]) == (404, "NetworkIncomplete")
    assert name in answer["message"]
    assert answer["message"].endswith("create tunnel: File exists")
    waiting = asyncio.create_task(vm_cfg(linux, wait="5"))
    await until(lambda: len(linux.agent.virtual_machines.waiters) == 1)
    await report(linux, version)
    assert (await waiting)[0] == 200


async def test_a_pod_does_not_wait_for_the_end_of_other_problems(store: SqliteStore, linux: ServedAgent) -> None:
    await store.put_virtual_machine(POD)
    version = (await complete(linux))["version"]
    await report(linux, version, problems={"0": "tap1: no route", str(BLUE_VNI): "MTU 1500: room for 1450"})
    assert (await vm_cfg(linux, wait="0"))[0] == 200


async def test_a_pod_waits_for_the_first_report(store: SqliteStore, linux: ServedAgent) -> None:
    await store.put_virtual_machine(POD)
    await complete(linux)
    status, answer = await vm_cfg(linux, wait="0.05")
    assert (status, answer["reason"]) == (404, "NetworkIncomplete")
    assert answer["message"].endswith("contrail-cnid has not reported yet")


async def test_a_pod_is_not_answered_while_nothing_is_reported(
    store: SqliteStore, linux: ServedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.put_virtual_machine(POD)
    version = (await complete(linux))["version"]
    monkeypatch.setattr(linux_datapath, "MAX_AGE", 0.0)
    status, answer = await vm_cfg(linux, wait="0.05")
    assert (status, answer["reason"]) == (404, "NetworkIncomplete")
    assert answer["message"].endswith("contrail-cnid has not reported yet")
    await report(linux, version)
    status, answer = await vm_cfg(linux, wait="0.05")
    assert (status, answer["reason"]) == (404, "NetworkIncomplete"), "what it once programmed is not kept up to date"
    assert answer["message"].endswith("contrail-cnid has not reported for 0 s")


async def replace_pod_after_a_change(store: SqliteStore, slices: SlicesInMemory) -> None:
    """Deletes the only pod of a network, changes what another node has of it, and creates the pod again."""
    await store.delete_virtual_machine(POD.uuid)
    await until(lambda: slices.watched == [])
    slices.put(make_slice(BLUE, "other", "192.0.2.9"))
    await store.put_virtual_machine(POD)
    await until(lambda: len(slices.watched) == 2)


async def test_a_report_on_an_older_version_says_nothing_of_a_network_that_was_forgotten_since(
    store: SqliteStore, linux: ServedAgent, slices: SlicesInMemory
) -> None:
    await store.put_virtual_machine(POD)
    older = (await complete(linux))["version"]
    await replace_pod_after_a_change(store, slices)
    await report(linux, older)
    status, answer = await vm_cfg(linux, wait="0.05")
    assert (status, answer["reason"]) == (404, "NetworkIncomplete")
    state = await complete(linux)
    assert state["version"] != older
    await report(linux, state["version"])
    assert (await vm_cfg(linux, wait="5"))[0] == 200


async def test_what_was_programmed_of_a_network_that_was_forgotten_does_not_count_for_its_next_pod(
    store: SqliteStore, linux: ServedAgent, slices: SlicesInMemory
) -> None:
    await store.put_virtual_machine(POD)
    await report(linux, (await complete(linux))["version"])
    assert (await vm_cfg(linux, wait="0"))[0] == 200
    await replace_pod_after_a_change(store, slices)
    status, answer = await vm_cfg(linux, wait="0.05")
    assert (status, answer["reason"]) == (404, "NetworkIncomplete")


async def test_a_network_that_comes_back_as_it_was_is_programmed_already(
    store: SqliteStore, linux: ServedAgent, slices: SlicesInMemory
) -> None:
    await store.put_virtual_machine(POD)
    version = (await complete(linux))["version"]
    await store.delete_virtual_machine(POD.uuid)
    await until(lambda: slices.watched == [])
    await store.put_virtual_machine(POD)
    await report(linux, version)
    assert (await complete(linux))["version"] == version
    assert (await vm_cfg(linux, wait="0"))[0] == 200


async def test_a_pod_waits_until_its_node_has_a_slice_if_other_nodes_have_one(
    store: SqliteStore, linux: ServedAgent, slices: SlicesInMemory
) -> None:
    own = [
        make_slice(BLUE, NODE, "192.0.2.1", endpoints=(Endpoint(BLUE.mac, ("10.1.1.11",)).text,)),
        routed(NODE, "192.0.2.1", "10.32.0.0/26", own="10.32.0.2"),
    ]
    for item in own:
        slices.remove(item)
    await store.put_virtual_machine(POD)
    state = await get(linux)
    while not (state["networks"] and is_complete(state["networks"][0])):
        state = await get(linux, version=state["version"])
    await report(linux, state["version"])
    status, answer = await vm_cfg(linux, wait="0.05")
    assert (status, answer["reason"]) == (404, "NetworkIncomplete")
    assert answer["message"].endswith("no slice of this node yet")
    waiting = asyncio.create_task(vm_cfg(linux, wait="5"))
    await until(lambda: len(linux.agent.virtual_machines.waiters) == 1)
    for item in own:
        slices.put(item)
    await report(linux, (await complete(linux))["version"])
    assert (await waiting)[0] == 200


async def test_a_pod_of_a_node_without_tunnel_address_does_not_wait(
    store: SqliteStore, linux: ServedAgent, slices: SlicesInMemory
) -> None:
    for interface in (PODS, BLUE):
        slices.put(msgspec.structs.replace(make_slice(interface, NODE, ""), tunnel=()))
    await store.put_virtual_machine(POD)
    assert (await vm_cfg(linux, wait="5"))[0] == 200


async def test_a_plugged_pod_is_served_at_any_time(
    store: SqliteStore, start_agent: StartAgent, slices: SlicesInMemory
) -> None:
    slices.is_hung = True
    linux = await start_agent(datapath=Datapath.LINUX, spanning=Spanning(slices, NODE, 4789))
    await store.put_virtual_machine(POD)
    await until(lambda: len(linux.agent.virtual_machines) == 1)
    await linux.unix.post("/vm", json=[port_of(POD.uuid, each.uuid) for each in POD.interfaces])
    assert (await vm_cfg(linux, wait="0"))[0] == 200


async def test_without_slices_networks_end_at_the_node(store: SqliteStore, start_agent: StartAgent) -> None:
    linux = await start_agent(datapath=Datapath.LINUX, spanning=Spanning(SlicesInMemory(), NODE, 4789))
    await store.put_virtual_machine(POD)
    assert (await vm_cfg(linux, wait="5"))[0] == 200
    state = await get(linux)
    while not (state["networks"] and is_complete(state["networks"][0])):
        state = await get(linux, version=state["version"])
    assert not {"tunnel", "nodes", "routed-network"} & state.keys()


class TestNodesWithoutPods:
    """A node with an address of the pod network reaches pods on other nodes without having one."""

    @pytest.fixture
    async def empty(self, start_agent: StartAgent, slices: SlicesInMemory) -> ServedAgent:
        return await start_agent(datapath=Datapath.LINUX, spanning=Spanning(slices, NODE, 4789, PODS.network_uuid))

    @staticmethod
    async def routed(linux: ServedAgent) -> Object:
        """The pod network once it is complete."""
        state = await get(linux)
        while not is_complete(state.get("routed-network")):
            state = await get(linux, version=state["version"])
        network: Object = state["routed-network"]
        return network

    async def test_it_is_served_the_pod_network_and_the_tunnel(
        self, empty: ServedAgent, slices: SlicesInMemory
    ) -> None:
        assert await self.routed(empty) == {
            "vni": PODS_VNI,
            "mtu": 1280,
            "own-blocks": ["10.32.0.0/26"],
            "remotes": [{"cidr": "10.32.0.64/26", "tunnel": "192.0.2.2"}],
            "addresses": ["10.32.0.2"],
            "node-addresses": [{"address": "10.32.0.64", "tunnel": "192.0.2.2"}],
        }
        state = await get(empty)
        assert (state["tunnel"], state["networks"]) == ({"addresses": ["192.0.2.1"], "port": 4789}, [])
        assert slices.watched == [frozenset((PODS.network_uuid,))]

    async def test_its_mtu_is_what_the_daemon_measures_until_there_is_a_pod(
        self, empty: ServedAgent, store: SqliteStore
    ) -> None:
        await self.routed(empty)
        version = (await get(empty))["version"]
        body = {"version": version, "changes": 0, "repaired": 0, "seconds": 0.01, "tunnel-mtu": 8950}
        async with empty.unix.post("/datapath", params={"follower": "test-1"}, json=body) as answer:
            assert answer.status == 200
        assert (await get(empty, version=version))["routed-network"]["mtu"] == 8950
        await store.put_virtual_machine(POD)
        assert (await complete(empty))["routed-network"]["mtu"] == 1450

    async def test_it_is_followed_when_the_last_pod_is_gone(
        self, empty: ServedAgent, store: SqliteStore, slices: SlicesInMemory
    ) -> None:
        await store.put_virtual_machine(POD)
        await complete(empty)
        await store.delete_virtual_machine(POD.uuid)
        await until(lambda: slices.watched == [frozenset((PODS.network_uuid,))])
        assert (await self.routed(empty))["addresses"] == ["10.32.0.2"]

    async def test_without_an_address_of_its_own_it_has_no_tunnel(
        self, empty: ServedAgent, slices: SlicesInMemory
    ) -> None:
        state = await get(empty)
        while "tunnel" not in state:
            state = await get(empty, version=state["version"])
        slices.remove(routed(NODE, "192.0.2.1", "10.32.0.0/26", own="10.32.0.2"))
        changed = await get(empty, version=state["version"])
        assert not {"tunnel", "routed-network"} & changed.keys()
