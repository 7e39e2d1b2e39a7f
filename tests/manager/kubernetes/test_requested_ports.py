"""Ports of pods in a cluster: the agent of the node is asked through the API server, and few writes are made for it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from contrail_config.errors import StoreError
from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.kubernetes.port_requests import OPEN, PORTS_REQUESTED
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualMachine
from contrail_config.port_readings import PodPorts, PortCounters, PortReading
from manager.api.queries import PortsUnansweredError
from manager.api.types import PortView
from manager.kubernetes import requested_ports
from manager.kubernetes.requested_ports import RENEWED_AFTER, RequestedPorts
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import VIRTUAL_MACHINE_KIND, add_node_buckets, virtual_machine_item
from tests.support.virtual_machines import NODE, make_virtual_machine

REPORT = NodeReport("2026-11-21T12:00:00Z", "worker_1", {"agent": "1.2.3"})
COUNTED_AT = "2026-11-21T12:00:05Z"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(server: FakeApiServer, client: KubeClient) -> AsyncIterator[KubernetesStore]:
    await ensure_crds(client)
    add_node_buckets(server)
    store = KubernetesStore(client)
    yield store
    await store.close()


@pytest.fixture
async def pod(store: KubernetesStore) -> VirtualMachine:
    pod = make_virtual_machine("web")
    await store.put_virtual_machine(pod)
    return pod


@pytest.fixture
def ports(client: KubeClient, clock: FakeClock) -> RequestedPorts:
    return RequestedPorts(client, {NODE: REPORT}, timeout=0.5, clock=clock)


def request_of(server: FakeApiServer, pod: VirtualMachine) -> str:
    """The request that is stored for a pod; empty if there is none."""
    metadata = virtual_machine_item(server, pod.pod, namespace=pod.namespace)["metadata"]
    return str(metadata.get("annotations", {}).get(PORTS_REQUESTED, ""))


def writes(server: FakeApiServer) -> int:
    """Number of writes of virtual machines."""
    return len(list(server.storage.since(0, VIRTUAL_MACHINE_KIND)))


def answer_to(pod: VirtualMachine, request: str, *, packets: int = 1) -> NodeReport:
    """A report with the ports of the pod."""
    counters = PortCounters(sent_packets=packets, sent_bytes=2, received_packets=3, received_bytes=4)
    reading = PortReading(pod.interfaces[0].uuid, "Connected", link="tap0", counters=counters)
    answers = (PodPorts(pod.uuid, request, COUNTED_AT, (reading,)),)
    return NodeReport(REPORT.reported_at, REPORT.instance, REPORT.versions, ports=answers)


async def answered(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine, *, node: str = NODE, **fields: Any
) -> list[PortView]:
    """Asks for the ports of a pod, has the node answer the request that is stored then, and returns them."""
    before = request_of(server, pod)
    found = asyncio.create_task(ports.find(pod, ["eth0"]))
    await eventually(lambda: found.done() or request_of(server, pod) != before)
    ports.reported(node, answer_to(pod, request_of(server, pod), **fields))
    return await found


async def test_the_ports_are_those_that_the_node_reports(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine
) -> None:
    (view,) = await answered(server, ports, pod)
    assert (view.namespace, view.pod, view.index, view.name) == (pod.namespace, pod.pod, 0, "eth0")
    assert (view.condition, view.link, view.counted_at) == ("Connected", "tap0", COUNTED_AT)
    assert view.counters is not None
    assert view.counters.sent_packets == 1


async def test_an_interface_that_the_node_does_not_report_is_unknown(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine
) -> None:
    task = asyncio.create_task(ports.find(pod, ["eth0"]))
    await eventually(lambda: request_of(server, pod))
    ports.reported(NODE, NodeReport("", "", ports=(PodPorts(pod.uuid, request_of(server, pod)),)))
    (view,) = await task
    assert (view.condition, view.reason, view.counted_at) == ("Unknown", "its node did not report it", None)


async def test_who_keeps_looking_gets_the_latest_and_costs_a_write_a_minute(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine, clock: FakeClock
) -> None:
    await answered(server, ports, pod)
    before, found = writes(server), []
    for second in range(0, 600, 10):
        ports.reported(NODE, answer_to(pod, request_of(server, pod), packets=second))
        (view,) = await ports.find(pod, ["eth0"])
        assert view.counters is not None
        found.append(view.counters.sent_packets)
        clock.advance(10)
    assert found == list(range(0, 600, 10))
    assert writes(server) - before == 9


async def test_many_who_look_at_the_same_time_cost_one_write(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine
) -> None:
    before = writes(server)
    tasks = [asyncio.create_task(ports.find(pod, ["eth0"])) for _ in range(50)]
    await eventually(lambda: request_of(server, pod))
    ports.reported(NODE, answer_to(pod, request_of(server, pod)))
    assert len({view.link for (view,) in await asyncio.gather(*tasks)}) == 1
    assert writes(server) - before == 1


async def test_who_hangs_up_takes_the_request_from_nobody(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine
) -> None:
    first, second = (asyncio.create_task(ports.find(pod, ["eth0"])) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await eventually(lambda: request_of(server, pod))
    ports.reported(NODE, answer_to(pod, request_of(server, pod)))
    assert await second
    assert first.cancelled()


async def test_a_silent_agent_is_named_and_is_not_asked_again_at_once(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine
) -> None:
    before = writes(server)
    for _ in range(3):
        with pytest.raises(PortsUnansweredError) as caught:
            await ports.find(pod, ["eth0"])
    assert str(caught.value) == (
        f"node {NODE}: its agent, of version 1.2.3, which reported at 2026-11-21T12:00:00Z, did not answer within 0.5 s"
    )
    assert writes(server) - before == 1


async def test_an_agent_that_falls_silent_is_noticed_when_its_request_was_renewed_in_vain(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine, clock: FakeClock
) -> None:
    await answered(server, ports, pod)
    clock.advance(RENEWED_AFTER)
    assert await ports.find(pod, ["eth0"])  # renewed; the agent may be about to answer
    clock.advance(RENEWED_AFTER)
    with pytest.raises(PortsUnansweredError, match="did not answer"):
        await ports.find(pod, ["eth0"])


async def test_an_old_answer_does_not_count_when_somebody_looks_again_later(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine, clock: FakeClock
) -> None:
    await answered(server, ports, pod)
    old = answer_to(pod, request_of(server, pod))
    clock.advance(OPEN)
    ports.reported(NODE, old)  # as a report that nobody writes any more is delivered again
    found = asyncio.create_task(ports.find(pod, ["eth0"]))
    await eventually(lambda: request_of(server, pod) != old.ports[0].requested)
    ports.reported(NODE, old)
    with pytest.raises(PortsUnansweredError):
        await found


async def test_only_the_node_of_the_pod_can_answer(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine
) -> None:
    with pytest.raises(PortsUnansweredError):
        await answered(server, ports, pod, node="worker-2")
    ports.reported(NODE, answer_to(pod, "guessed"))
    with pytest.raises(PortsUnansweredError):
        await ports.find(pod, ["eth0"])


async def test_a_node_without_a_report_is_not_asked(
    server: FakeApiServer, client: KubeClient, pod: VirtualMachine
) -> None:
    with pytest.raises(PortsUnansweredError, match=f"^node {NODE}: no agent has reported$"):
        await RequestedPorts(client, {}).find(pod, ["eth0"])
    assert request_of(server, pod) == ""


async def test_requests_are_limited_but_open_ones_are_answered(
    server: FakeApiServer, store: KubernetesStore, ports: RequestedPorts, pod: VirtualMachine, clock: FakeClock
) -> None:
    await answered(server, ports, pod)
    clock.advance(RENEWED_AFTER)
    others = [make_virtual_machine(f"other-{number}") for number in range(50)]
    for other in others:
        await store.put_virtual_machine(other)
    before = writes(server)
    results = await asyncio.gather(*(ports.find(other, ["eth0"]) for other in others), return_exceptions=True)
    await eventually(lambda: writes(server) - before == 20)  # they go on when nobody waits for them any more
    assert sum("too many pods" in str(result) for result in results) == 30
    assert await ports.find(pod, ["eth0"])
    assert writes(server) - before == 20
    clock.advance(1)
    assert await ports.find(pod, ["eth0"])
    await eventually(lambda: writes(server) - before == 21)


async def test_few_requests_are_kept(
    store: KubernetesStore, ports: RequestedPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requested_ports, "MAX_REQUESTED", 4)
    for number in range(6):
        pod = make_virtual_machine(f"pod-{number}")
        await store.put_virtual_machine(pod)
        with contextlib.suppress(PortsUnansweredError):
            await ports.find(pod, ["eth0"])
    assert len(ports._requests) == 4


async def test_an_api_server_that_does_not_answer_is_named_in_place_of_the_agent(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine
) -> None:
    await server.stop()
    with pytest.raises(PortsUnansweredError, match="the API server did not take the request"):
        await ports.find(pod, ["eth0"])
    await server.start()


async def test_a_request_that_could_not_be_written_is_written_again(
    server: FakeApiServer, ports: RequestedPorts, pod: VirtualMachine
) -> None:
    server.faults.reject(403, verb="update", times=1)
    with pytest.raises(StoreError):
        await ports.find(pod, ["eth0"])
    assert await answered(server, ports, pod)
