"""State of a port as the agent knows it: plugged, connected as the datapath reports, refused, and what was dropped."""

import pytest

from agent_api.datapath.kind import Datapath
from agent_api.datapath.port_state import PortCondition, PortState
from agent_api.datapath.report import Counters
from agent_api.datapath.reports import MAX_AGE
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import Refusal
from tests.agent_api.conftest import StartAgent
from tests.agent_api.datapath.test_unconnected_ports import make_pod, plug, report
from tests.support.served_agent import ServedAgent, port_of
from tests.support.virtual_machines import SAMPLE_VM


async def states(linux: ServedAgent, store: SqliteStore, *, vni: int = 5) -> list[PortState]:
    """The states of the ports of a pod that is plugged with `tap0-0` and `tap0-1`."""
    pod = make_pod(vni=vni)
    await plug(linux, store, [pod])
    return linux.agent.port_states(pod)


def conditions(found: list[PortState]) -> list[tuple[PortCondition, str]]:
    return [(state.condition, state.reason) for state in found]


async def test_a_plugged_port_is_connected_once_the_datapath_reports_no_problem(
    start_agent: StartAgent, store: SqliteStore
) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    silent = f"nothing has been reported of the datapath for {MAX_AGE:g} s"
    assert conditions(await states(linux, store)) == 2 * [(PortCondition.UNKNOWN, silent)]
    await report(linux)
    found = await states(linux, store)
    assert conditions(found) == 2 * [(PortCondition.CONNECTED, "")]
    assert [state.port and state.port.host_ifname for state in found] == ["tap0-0", "tap0-1"]


async def test_a_missing_host_end_and_a_problem_of_the_network_are_told_apart(
    start_agent: StartAgent, store: SqliteStore
) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    await states(linux, store)
    await report(linux, missing={"0": ["tap0-0"]}, problems={"5": "no bridge"})
    assert conditions(linux.agent.port_states(make_pod())) == [
        (PortCondition.MISSING, "the host end does not exist"),
        (PortCondition.PROBLEM, "no bridge"),
    ]


async def test_drops_are_those_of_the_network_of_the_port(start_agent: StartAgent, store: SqliteStore) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    await states(linux, store)
    await report(linux, drops={"5": {"spoofing": 7, "broadcast": 2, "mtu": 1, "ports": {"tap0-1": 3}}})
    first, second = linux.agent.port_states(make_pod())
    assert first.drops is None
    assert second.drops is not None
    assert (second.drops.spoofing, second.drops.ports) == (7, {"tap0-1": 3})


async def test_counters_are_those_of_the_host_end_of_the_port(start_agent: StartAgent, store: SqliteStore) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    await states(linux, store)
    await report(linux, counters={"0": {"tap0-1": [9, 9, 9, 9]}, "5": {"tap0-1": [1, 2, 3, 4]}})
    first, second = linux.agent.port_states(make_pod())
    assert (first.counters, second.counters) == (None, Counters(1, 2, 3, 4))


async def test_a_network_without_a_vni_is_a_problem(start_agent: StartAgent, store: SqliteStore) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    await states(linux, store, vni=0)
    await report(linux)
    _, second = linux.agent.port_states(make_pod(vni=0))
    assert second.condition is PortCondition.PROBLEM
    assert "VNI" in second.reason


async def test_what_is_refused_is_looked_up_once_for_a_pod(
    start_agent: StartAgent, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    assert linux.agent.datapath is not None
    await states(linux, store)
    looked_up: list[bool] = []

    def refusals() -> list[Refusal]:
        looked_up.append(True)
        return [Refusal(make_pod().interfaces[1].network, 5, "no-vni", "it has no VNI")]

    monkeypatch.setattr(linux.agent.datapath, "refusals", refusals)
    found = linux.agent.port_states(make_pod())
    assert (found[1].condition, found[1].reason) == (PortCondition.PROBLEM, "it has no VNI")
    assert looked_up == [True]


async def test_without_a_datapath_only_plugging_is_known(start_agent: StartAgent, store: SqliteStore) -> None:
    agent = await start_agent(datapath=Datapath.NONE)
    pod = make_pod()
    async with agent.unix.post("/vm", json=[port_of(SAMPLE_VM, pod.interfaces[0].uuid)]) as answer:
        assert answer.status == 200
    assert [state.condition for state in agent.agent.port_states(pod)] == [
        PortCondition.UNKNOWN,
        PortCondition.NOT_PLUGGED,
    ]
