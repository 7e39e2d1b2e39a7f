"""Ports without traffic are reasons by pod and network, with which the node stays ready."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from agent_api.datapath import unconnected_ports
from agent_api.datapath.kind import Datapath
from agent_api.datapath.report import parse_report
from agent_api.datapath.reports import MAX_AGE, DatapathReports
from agent_api.datapath.unconnected_ports import GRACE, Cause, UnconnectedPorts
from agent_api.ports.container import ContainerPort
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine, VirtualMachineInterface
from contrail_config.reserved_macs import GATEWAY_MAC
from tests.agent_api.conftest import StartAgent
from tests.support.fake_clock import FakeClock
from tests.support.served_agent import ServedAgent, port_of
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, left_interface, make_virtual_machine, sample_interface

LEFT = "default-domain:k8s-default:k8s-left-pod-network"
PODS = "default-domain:k8s-default:k8s-default-pod-network"


@pytest.fixture
async def linux(start_agent: StartAgent) -> ServedAgent:
    return await start_agent(datapath=Datapath.LINUX)


def make_pod(uid: str = SAMPLE_VM, name: str = "p1", **fields: Any) -> VirtualMachine:
    """A pod with the pod network and one of VNI 5, whose interface has these fields."""
    fields = {"vni": 5} | fields
    first = msgspec.structs.replace(sample_interface(), uuid=SAMPLE_VMI[:-4] + uid[-4:])
    return make_virtual_machine(
        name, uid=uid, interfaces=(first, msgspec.structs.replace(left_interface(uid, 1), **fields))
    )


async def plug(linux: ServedAgent, store: SqliteStore, pods: Sequence[VirtualMachine]) -> None:
    """Stores the pods, and plugs all their interfaces with host ends that are numbered."""
    for number, pod in enumerate(pods):
        await store.put_virtual_machine(pod)
        ports = [
            port_of(pod.uuid, each.uuid, host_ifname=f"tap{number}-{index}", vm_ifname=f"eth{index}")
            for index, each in enumerate(pod.interfaces)
        ]
        async with linux.unix.post("/vm", json=ports) as answer:
            assert answer.status == 200
    state = await desired(linux)
    while len(state["routed"]) < len(pods):
        state = await desired(linux, version=state["version"])


async def desired(linux: ServedAgent, **parameters: str) -> dict[str, Any]:
    async with linux.unix.get("/datapath", params={"wait": "5", **parameters}) as answer:
        content: dict[str, Any] = await answer.json()
    return content


async def report(linux: ServedAgent, **fields: Any) -> None:
    body = {"version": "v", "changes": 0, "repaired": 0, "seconds": 0.1, **fields}
    async with linux.unix.post("/datapath", params={"follower": "test-1"}, json=body) as answer:
        assert answer.status == 200


async def readyz(linux: ServedAgent) -> tuple[int, dict[str, Any]]:
    async with linux.tcp.get("/readyz") as answer:
        return answer.status, await answer.json()


async def test_readyz_names_pods_without_their_host_end_and_stays_ready(
    linux: ServedAgent, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unconnected_ports, "GRACE", 0.0)
    await plug(linux, store, [make_pod()])
    await report(linux, missing={"0": ["tap0-0"], "5": ["tap0-1"]})
    reasons = [
        f"datapath: pod default/p1: eth0: network {PODS}: not connected: no host end tap0-0 for 0 s: delete the pod",
        f"datapath: pod default/p1: eth1: network {LEFT}: not connected: no host end tap0-1 for 0 s: delete the pod",
    ]
    assert await readyz(linux) == (200, {"ready": True, "reasons": reasons, "datapath": "linux"})
    assert await unconnected_metric(linux) == {"missing": 2.0, "refused": 0.0}
    await report(linux)
    assert await readyz(linux) == (200, {"ready": True, "reasons": [], "datapath": "linux"})


async def test_a_fault_of_the_node_is_named_before_those_of_single_pods(
    linux: ServedAgent, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unconnected_ports, "GRACE", 0.0)
    await plug(linux, store, [make_pod()])
    await report(linux, missing={"5": ["tap0-1"]}, problems={"5": "no bridge"})
    status, content = await readyz(linux)
    assert (status, content["ready"]) == (503, False)
    assert [each[:25] for each in content["reasons"]] == ["datapath: VNI 5: no bridg", "datapath: pod default/p1:"]


async def test_a_port_of_a_refused_network_is_a_reason(linux: ServedAgent, store: SqliteStore) -> None:
    other = ("a", "b", "other")
    second = make_pod("cccccccc-0000-4000-8000-000000000002", "p2", network_uuid=SAMPLE_VM, network=other)
    await plug(linux, store, [make_pod(), second])
    await report(linux)
    status, content = await readyz(linux)
    assert (status, content["reasons"]) == (
        200,
        [
            f"datapath: pod default/p1: eth1: network {LEFT}: not connected: VNI 5 is also that of a:b:other",
            f"datapath: pod default/p2: eth1: network a:b:other: not connected: VNI 5 is also that of {LEFT}",
        ],
    )
    assert await unconnected_metric(linux) == {"missing": 0.0, "refused": 2.0}


async def test_of_a_network_only_the_interface_with_a_reserved_mac_is_named(
    linux: ServedAgent, store: SqliteStore
) -> None:
    second = make_pod("cccccccc-0000-4000-8000-000000000002", "p2", mac=GATEWAY_MAC)
    await plug(linux, store, [make_pod(), second])
    await report(linux)
    (reason,) = (await readyz(linux))[1]["reasons"]
    assert reason.startswith(f"datapath: pod default/p2: eth1: network {LEFT}: interface with MAC {GATEWAY_MAC}")


async def test_five_ports_are_named_and_the_rest_is_counted(
    linux: ServedAgent, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unconnected_ports, "GRACE", 0.0)
    pods = [make_pod(f"cccccccc-0000-4000-8000-00000000000{number}", f"p{number}") for number in range(8)]
    await plug(linux, store, pods)
    await report(linux, missing={"5": [f"tap{number}-1" for number in range(8)]})
    reasons = (await readyz(linux))[1]["reasons"]
    assert [each.split(":")[1] for each in reasons[:5]] == [f" pod default/p{number}" for number in range(5)]
    assert reasons[5:] == ["datapath: 3 more interfaces are not connected"]


class TestGrace:
    """While a pod ends, its host end is gone before its port is."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def reports(self, clock: FakeClock) -> DatapathReports:
        return DatapathReports(clock=clock)

    @pytest.fixture
    async def ports(self, linux: ServedAgent, store: SqliteStore, reports: DatapathReports) -> UnconnectedPorts:
        def port(_pod: VirtualMachine, interface: VirtualMachineInterface) -> ContainerPort | None:
            found = linux.agent.ports.by_interface(interface.uuid)
            return found if isinstance(found, ContainerPort) else None

        await plug(linux, store, [make_pod()])
        assert linux.agent.datapath is not None
        return UnconnectedPorts(linux.agent.virtual_machines, linux.agent.datapath.feed, reports, port_of=port)

    @staticmethod
    def add(reports: DatapathReports, *missing: str) -> None:
        body = {"version": "v", "changes": 0, "repaired": 0, "seconds": 0.1, "missing": {"5": missing}}
        reports.add(parse_report(msgspec.json.encode(body)))

    async def test_a_host_end_that_is_missing_is_a_reason_after_the_grace_period(
        self, ports: UnconnectedPorts, reports: DatapathReports, clock: FakeClock
    ) -> None:
        self.add(reports, "tap0-1")
        clock.advance(GRACE - 1)
        assert ports.reasons() == []
        self.add(reports, "tap0-1")  # a later report does not begin it again
        clock.advance(1)
        assert "no host end tap0-1 for 10 s" in ports.reasons()[0]
        assert ports.counts() == {Cause.MISSING: 1, Cause.REFUSED: 0}

    async def test_one_that_was_back_in_between_has_a_grace_period_of_its_own(
        self, ports: UnconnectedPorts, reports: DatapathReports, clock: FakeClock
    ) -> None:
        for missing in (["tap0-1"], [], ["tap0-1"]):
            self.add(reports, *missing)
            clock.advance(GRACE - 1)
        assert ports.reasons() == []

    async def test_nothing_is_known_of_ports_without_a_current_report(
        self, ports: UnconnectedPorts, reports: DatapathReports, clock: FakeClock
    ) -> None:
        assert ports.reasons() == []
        self.add(reports, "tap0-1")
        clock.advance(MAX_AGE + 1)
        assert ports.reasons() == []


async def unconnected_metric(linux: ServedAgent) -> dict[str, float]:
    async with linux.unix.get("/metrics") as answer:
        lines = (await answer.text()).splitlines()
    prefix = "contrail_agent_datapath_unconnected_ports{reason="
    found = [line.removeprefix(prefix).split("} ") for line in lines if line.startswith(prefix)]
    return {reason.strip('"'): float(number) for reason, number in found}
