"""Readiness, and the metrics of the agent."""

import asyncio
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from agent_api.datapath.kind import Datapath
from agent_api.metrics import BUCKETS
from agent_api.node_agent import NodeAgent
from contrail_config.embedded.store import SqliteStore
from tests.agent_api.conftest import StartAgent, WaitForSync
from tests.support.served_agent import ServedAgent, port_of, running, until
from tests.support.virtual_machines import NODE, SAMPLE_VM, SAMPLE_VMI, make_pending, make_virtual_machine

Sample = tuple[str, frozenset[tuple[str, str]]]


async def metrics(served: ServedAgent) -> dict[Sample, float]:
    async with served.unix.get("/metrics") as answer:
        families = text_string_to_metric_families(await answer.text())
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }


def value(samples: dict[Sample, float], name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


async def test_an_agent_is_ready_when_ports_are_loaded_and_virtual_machines_listed(
    store: SqliteStore, tmp_path: Path
) -> None:
    agent = NodeAgent(store=store, node=NODE, ports_dir=str(tmp_path / "ports"), registry=CollectorRegistry())
    assert agent.readiness() == ["ports: not loaded yet", "virtual machines: not listed yet"]
    await agent.load_ports()
    assert agent.readiness() == ["virtual machines: not listed yet"]
    async with running(agent):
        await until(lambda: not agent.readiness())


async def test_ports_are_loaded_once(store: SqliteStore, tmp_path: Path) -> None:
    agent = NodeAgent(store=store, node=NODE, ports_dir=str(tmp_path / "ports"), registry=CollectorRegistry())
    async with running(agent):
        await until(lambda: not agent.readiness())
        await agent.load_ports()


async def test_readiness_is_served(served: ServedAgent, wait_for_sync: WaitForSync) -> None:
    await wait_for_sync()
    async with served.tcp.get("/readyz") as answer:
        assert (answer.status, await answer.json()) == (200, {"ready": True, "reasons": [], "datapath": "none"})


async def test_readiness_says_the_kind_of_datapath(start_agent: StartAgent) -> None:
    served = await start_agent(datapath=Datapath.LINUX)
    async with served.tcp.get("/readyz") as answer:
        assert (await answer.json())["datapath"] == "linux"


async def test_requests_are_counted_by_method_route_and_status(served: ServedAgent) -> None:
    await served.tcp.get("/vm-cfg/k8s__default__p1")
    await served.tcp.get("/vm-cfg/k8s__default__p2")
    await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
    await served.tcp.post("/vm", json={})
    await served.tcp.get("/elsewhere")
    await served.tcp.request("PATCH", "/unknown/path")
    samples = await metrics(served)
    counted = {
        tuple(dict(labels)[key] for key in ("method", "route", "status")): count
        for (name, labels), count in samples.items()
        if name == "contrail_agent_requests_total"
    }
    assert counted == {
        ("GET", "/vm-cfg/{name}", "404"): 2,
        ("POST", "/vm", "200"): 1,
        ("POST", "/vm", "400"): 1,
        ("unknown", "unknown", "404"): 2,
    }


async def test_virtual_machines_ports_and_waiting_requests_are_gauges(
    store: SqliteStore, served: ServedAgent, wait_for_sync: WaitForSync
) -> None:
    await store.put_virtual_machine(make_virtual_machine())
    await store.put_pending(make_pending("waits"))
    await wait_for_sync()
    await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
    waiting = asyncio.create_task(served.tcp.get("/vm-cfg/k8s__default__nobody?wait=30"))
    await until(lambda: len(served.agent.virtual_machines.waiters))
    samples = await metrics(served)
    assert value(samples, "contrail_agent_machines") == 2  # one is the marker of `wait_for_sync`
    assert value(samples, "contrail_agent_ports") == 1
    assert value(samples, "contrail_agent_waiting_requests") == 1
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_durations_start_at_1_ms_and_exclude_the_wait(served: ServedAgent) -> None:
    assert BUCKETS[0] == 0.001
    async with served.tcp.get("/vm-cfg/k8s__default__nobody?wait=0.2") as answer:
        assert answer.status == 404
    samples = await metrics(served)
    assert value(samples, "contrail_agent_request_seconds_count", route="/vm-cfg/{name}") == 1
    assert value(samples, "contrail_agent_request_seconds_sum", route="/vm-cfg/{name}") < 0.2


async def test_a_disconnected_client_is_counted_as_hung_up(served: ServedAgent) -> None:
    waiting = asyncio.create_task(served.tcp.get("/vm-cfg/k8s__default__nobody?wait=30"))
    await until(lambda: len(served.agent.virtual_machines.waiters))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await until(lambda: not len(served.agent.virtual_machines.waiters))
    samples = await metrics(served)
    route = "/vm-cfg/{name}"
    assert value(samples, "contrail_agent_requests_total", method="GET", route=route, status="hung up") == 1
