"""`/datapath` of a running agent: desired state on the Unix socket."""

import asyncio
from typing import Any, ClassVar

import msgspec
import pytest

from agent_api.datapath.kind import Datapath
from agent_api.handlers import datapath as handlers
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.agent_api.conftest import StartAgent
from tests.support.served_agent import ServedAgent, port_of, until
from tests.support.virtual_machines import SAMPLE_VM, left_interface, make_virtual_machine, sample_interface


@pytest.fixture
async def linux(start_agent: StartAgent) -> ServedAgent:
    return await start_agent(datapath=Datapath.LINUX)


def make_pod(*, vni: int = 5, uid: str = SAMPLE_VM, name: str = "p1") -> VirtualMachine:
    """A pod with the pod network and a network of this VNI."""
    interfaces = (sample_interface(), msgspec.structs.replace(left_interface(uid, 1), vni=vni))
    return make_virtual_machine(name, uid=uid, interfaces=interfaces)


async def get(served: ServedAgent, **parameters: str) -> dict[str, Any]:
    async with served.unix.get("/datapath", params={"wait": "5", **parameters}) as answer:
        assert answer.status == 200
        content: dict[str, Any] = await answer.json()
    return content


async def test_a_network_is_served_with_its_pod_and_its_ports_when_they_are_plugged(
    store: SqliteStore, linux: ServedAgent
) -> None:
    empty = await get(linux)
    assert (empty["networks"], empty["routed"]) == ([], [])
    pod = make_pod()
    await store.put_virtual_machine(pod)
    with_network = await get(linux, version=empty["version"])
    assert [(network["vni"], network["ports"]) for network in with_network["networks"]] == [(5, [])]
    ports = [
        port_of(pod.uuid, interface.uuid, host_ifname=f"tap{index}") for index, interface in enumerate(pod.interfaces)
    ]
    await linux.unix.post("/vm", json=ports)
    plugged = await get(linux, version=with_network["version"])
    assert [port["link"] for port in plugged["networks"][0]["ports"]] == ["tap1"]
    assert [port["link"] for port in plugged["routed"]] == ["tap0"]
    await linux.unix.delete(f"/vm/{pod.uuid}")
    unplugged = await get(linux, version=plugged["version"])
    assert unplugged == with_network
    await store.delete_virtual_machine(pod.uuid)
    assert await get(linux, version=unplugged["version"]) == empty


async def test_a_port_of_another_virtual_machine_is_not_that_of_the_interface(
    store: SqliteStore, linux: ServedAgent
) -> None:
    pod = make_pod()
    await store.put_virtual_machine(pod)
    other = "bbbbbbbb-0000-4000-8000-000000000001"
    await linux.unix.post("/vm", json=port_of(other, pod.interfaces[1].uuid))
    empty = await get(linux)
    while not empty["networks"]:
        empty = await get(linux, version=empty["version"])
    assert empty["networks"][0]["ports"] == []


async def test_two_networks_with_one_vni_are_named_in_the_status_and_in_the_log_and_the_node_stays_ready(
    store: SqliteStore, linux: ServedAgent, caplog: pytest.LogCaptureFixture
) -> None:
    first = make_pod()
    await store.put_virtual_machine(first)
    state = await get(linux)
    while not state["networks"]:
        state = await get(linux, version=state["version"])
    second = make_pod(uid="cccccccc-0000-4000-8000-000000000001", name="p2")
    interface = msgspec.structs.replace(second.interfaces[1], network_uuid=SAMPLE_VM, network=("a", "b", "other"))
    await store.put_virtual_machine(
        msgspec.structs.replace(second, interfaces=(second.interfaces[0], interface)),
    )
    assert (await get(linux, version=state["version"]))["networks"] == []
    message = "network a:b:other: not connected: VNI 5 is also that of default-domain:k8s-default:k8s-left-pod-network"
    assert f"datapath: {message}" in caplog.text
    (other, left) = (await status(linux))["refused"]
    assert other == {"network": ["a", "b", "other"], "vni": 5, "reason": "equal-vni", "message": message}
    assert left["network"] == ["default-domain", "k8s-default", "k8s-left-pod-network"]
    async with linux.tcp.get("/metrics") as answer:
        assert 'contrail_agent_datapath_refused{reason="equal-vni"} 2.0' in await answer.text()
    for pod in (first, second):  # an ADD of either would connect them
        async with linux.unix.get(f"/vm-cfg/{pod.name}") as answer:
            index_0, index_1 = await answer.json()
        assert index_0["routed"]
        assert index_1["refused"].startswith("network ")
        assert "network-namespace" not in index_1
    async with linux.unix.get("/readyz") as answer:
        assert answer.status == 200
    await store.delete_virtual_machine(second.uuid)
    await until(lambda: linux.agent.virtual_machines.by_uuid(second.uuid) is None)
    assert (await get(linux))["networks"]
    assert (await status(linux))["refused"] == []


REFUSED: dict[str, Any] = {"vni": 5, "subnet": "8.8.8.0/24"}


OVERLAPS: dict[str, tuple[dict[str, Any], str]] = {
    "node-route": ({"overlaps": "8.0.0.0/8"}, "it overlaps the node's route to 8.0.0.0/8"),
    "network-route": ({"overlaps": "8.8.0.0/16", "by": 9}, "it overlaps 8.8.0.0/16 of network VNI 9"),
    "reserved": ({"overlaps": "fe80::/10"}, "it overlaps fe80::/10, which is never routed"),
    "not-allowed": ({}, "it is not in the agent's fabric-subnets"),
    "other": ({"reason": "not-known-yet", "also": 1}, "not-known-yet"),
}


@pytest.mark.parametrize("reason", OVERLAPS)
async def test_subnets_without_a_route_are_no_reason_to_be_unready(
    store: SqliteStore, linux: ServedAgent, reason: str
) -> None:
    fields, problem = OVERLAPS[reason]
    await store.put_virtual_machine(make_pod())
    state = await get(linux)
    while not state["networks"]:
        state = await get(linux, version=state["version"])
    report = {
        "version": state["version"],
        "changes": 0,
        "repaired": 0,
        "seconds": 0.1,
        "refused": [REFUSED | {"reason": reason} | fields],
    }
    await post(linux, report | {"key-of-a-newer-daemon": {}})
    (refused,) = (await status(linux))["refused"]
    name = ["default-domain", "k8s-default", "k8s-left-pod-network"]
    assert refused["message"] == f"network {':'.join(name)}: ip_fabric_forwarding: no route to 8.8.8.0/24: {problem}"
    assert (refused["network"], refused["subnet"], refused["connected"]) == (name, "8.8.8.0/24", True)
    async with linux.unix.get("/readyz") as answer:
        assert answer.status == 200
    async with linux.tcp.get("/metrics") as answer:
        text = await answer.text()
    assert f'contrail_agent_datapath_refused{{reason="{reason}"}} 1.0' in text
    assert "contrail_agent_datapath_problems 0.0" in text


async def status(served: ServedAgent) -> dict[str, Any]:
    """What `/datapath/report` serves."""
    async with served.tcp.get("/datapath/report") as answer:
        content: dict[str, Any] = await answer.json()
    return content


class TestFollowers:
    """One process at a time gets the state for programming."""

    async def test_the_first_one_programs_and_another_one_is_rejected(self, linux: ServedAgent) -> None:
        await get(linux, follower="first-1")
        for request in (
            linux.unix.get("/datapath", params={"follower": "second-2", "wait": "0.05"}),
            linux.unix.post("/datapath", params={"follower": "second-2"}, json=TestReports.REPORT),
        ):
            async with request as answer:
                assert answer.status == 409
                assert (await answer.json())["error"] == "first-1 programs the datapath of this node"
        async with linux.tcp.get("/datapath/report") as answer:
            status = await answer.json()
        assert (status["follower"], status["report"]) == ("first-1", None)

    async def test_the_next_one_gets_the_state_as_soon_as_the_first_hangs_up(self, linux: ServedAgent) -> None:
        version = (await get(linux, follower="first-1"))["version"]
        waiting = asyncio.create_task(get(linux, follower="first-1", version=version))
        feed = linux.agent.datapath.feed if linux.agent.datapath else None
        assert feed is not None
        await until(lambda: len(feed.waiters) == 1)
        successor = asyncio.create_task(get(linux, follower="second-2"))
        await until(lambda: len(feed.waiters) == 2)
        waiting.cancel()
        assert (await successor)["version"] == version
        async with linux.tcp.get("/datapath/report") as answer:
            assert (await answer.json())["follower"] == "second-2"

    async def test_who_only_reads_takes_nothing(self, linux: ServedAgent) -> None:
        await get(linux, follower="first-1")
        assert await get(linux) == await get(linux, follower="first-1")

    async def test_a_report_without_a_name_is_rejected(self, linux: ServedAgent) -> None:
        async with linux.unix.post("/datapath", json=TestReports.REPORT) as answer:
            assert answer.status == 400
            assert "follower" in (await answer.json())["error"]


async def test_it_is_not_served_over_tcp(linux: ServedAgent) -> None:
    async with linux.tcp.get("/datapath") as answer:
        assert answer.status == 404


async def test_without_a_datapath_there_is_no_such_path(served: ServedAgent) -> None:
    async with served.unix.get("/datapath") as answer:
        assert answer.status == 404


async def test_waiting_requests_are_limited(linux: ServedAgent) -> None:
    version = (await get(linux))["version"]
    feed = linux.agent.datapath.feed if linux.agent.datapath else None
    assert feed is not None
    waiting = [asyncio.create_task(get(linux, version=version)) for _ in range(handlers.MAX_WAITING)]
    await until(lambda: len(feed.waiters) == handlers.MAX_WAITING)
    async with linux.unix.get("/datapath", params={"wait": "5", "version": version}) as answer:
        assert answer.status == 503
        assert "too many waiting requests" in (await answer.json())["error"]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


@pytest.mark.parametrize(
    "parameters", [{"wait": "soon"}, {"version": ""}, {"follower": ""}, {"follower": "a b"}, {"follower": "a" * 65}]
)
async def test_a_wrong_parameter_is_named(linux: ServedAgent, parameters: dict[str, str]) -> None:
    async with linux.unix.get("/datapath", params=parameters) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"].startswith(f"{next(iter(parameters))}: ")


class TestReports:
    """`POST /datapath` and what becomes of it."""

    REPORT: ClassVar = {
        "version": "v1",
        "changes": 2,
        "repaired": 1,
        "seconds": 0.25,
        "problems": {"5": "no bridge"},
        "missing": {"5": ["tap1", "tap2"]},
        "drops": {"5": {"spoofing": 3, "broadcast": 4, "tunnel": 0, "mtu": 6, "ports": {"tap1": 3}}},
        "repairs": {"filter": 2},
        "unconnected": [5],
        "refused": [],
        "tunnel-mtu": 1450,
        "missing-modules": ["bridge"],
        "daemon-version": "1.2.3",
        "repaired-networks": {"5": 2},
        "counters": None,
    }

    async def test_the_latest_report_is_shown_on_every_listener(self, linux: ServedAgent) -> None:
        version = (await get(linux))["version"]
        nothing = {"version": version, "networks": {}, "refused": [], "follower": None, "age": None, "report": None}
        async with linux.tcp.get("/datapath/report") as answer:
            assert await answer.json() == nothing | {"counters": {}, "outdated": [], "datapath": "linux"}
        counters = {"5": {"tap1": [1, 2, 3, 4]}}
        await post(linux, self.REPORT | {"counters": counters})
        for client in (linux.tcp, linux.unix):
            async with client.get("/datapath/report") as answer:
                shown = await answer.json()
            assert (shown["report"], shown["counters"]) == (self.REPORT, counters)
            assert shown["age"] >= 0

    async def test_networks_are_shown_with_their_names_and_numbers_of_ports(
        self, linux: ServedAgent, store: SqliteStore
    ) -> None:
        pod = make_pod()
        await store.put_virtual_machine(pod)
        await linux.unix.post("/vm", json=[port_of(pod.uuid, each.uuid) for each in pod.interfaces])
        state = await get(linux)
        while not (state["networks"] and state["networks"][0]["ports"] and state["routed"]):
            state = await get(linux, version=state["version"])
        async with linux.tcp.get("/datapath/report") as answer:
            networks = (await answer.json())["networks"]
        name = ":".join(pod.interfaces[1].network)
        assert networks == {"0": {"name": None, "ports": 1}, "5": {"name": name, "ports": 1}}

    async def test_it_is_accepted_only_on_the_unix_socket(self, linux: ServedAgent) -> None:
        async with linux.tcp.post("/datapath", json=self.REPORT) as answer:
            assert answer.status == 404

    async def test_an_invalid_report_changes_nothing(self, linux: ServedAgent) -> None:
        await post(linux, self.REPORT)
        invalid = self.REPORT | {"repaired": -1}
        async with linux.unix.post("/datapath", params={"follower": "test-1"}, json=invalid) as answer:
            assert answer.status == 400
            assert (await answer.json())["error"].startswith("repaired: ")
        async with linux.unix.get("/datapath/report") as answer:
            assert (await answer.json())["report"] == self.REPORT

    async def test_its_problems_are_reasons_of_which_three_are_named(self, linux: ServedAgent) -> None:
        await get(linux)
        await post(linux, self.REPORT | {"problems": {str(vni): "no bridge" for vni in range(1, 6)}})
        async with linux.unix.get("/readyz") as answer:
            assert answer.status == 503
            reasons = (await answer.json())["reasons"]
        named = [f"datapath: VNI {vni}: no bridge" for vni in (1, 2, 3)]
        assert reasons == [*named, "datapath: 2 more problems"]
        await post(linux, self.REPORT | {"problems": {}})
        async with linux.unix.get("/readyz") as answer:
            assert answer.status == 200

    async def test_its_numbers_are_metrics(self, store: SqliteStore, linux: ServedAgent) -> None:
        pod = make_pod()
        await store.put_virtual_machine(pod)
        await linux.unix.post("/vm", json=port_of(pod.uuid, pod.interfaces[1].uuid))
        state = await get(linux)
        while not (state["networks"] and state["networks"][0]["ports"]):
            state = await get(linux, version=state["version"])
        await post(linux, self.REPORT)
        await post(linux, self.REPORT | {"drops": {"5": {"spoofing": 5, "broadcast": 4, "mtu": 9}}})
        async with linux.unix.get("/metrics") as answer:
            text = await answer.text()
        for line in (
            'contrail_agent_datapath_kind{kind="linux"} 1.0',
            "contrail_agent_datapath_networks 1.0",
            "contrail_agent_datapath_ports 1.0",
            "contrail_agent_datapath_problems 1.0",
            'contrail_agent_datapath_missing_modules{module="bridge"} 1.0',
            "contrail_agent_datapath_resync_seconds 0.25",
            "contrail_agent_datapath_repaired_total 2.0",
            'contrail_agent_datapath_repairs_total{kind="filter"} 4.0',
            'contrail_agent_datapath_repairs_total{kind="bridge"} 0.0',
            'contrail_agent_datapath_drops_total{reason="spoofing"} 2.0',
            'contrail_agent_datapath_drops_total{reason="broadcast"} 0.0',
            'contrail_agent_datapath_drops_total{reason="tunnel"} 0.0',
            'contrail_agent_datapath_drops_total{reason="mtu"} 3.0',
        ):
            assert line in text.splitlines()


async def post(served: ServedAgent, report: dict[str, Any]) -> None:
    async with served.unix.post("/datapath", params={"follower": "test-1"}, json=report) as answer:
        assert (answer.status, await answer.json()) == (200, {})
