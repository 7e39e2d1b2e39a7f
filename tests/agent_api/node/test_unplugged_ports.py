"""A port that outlives its VirtualMachine is pending, and reported when unplugged; ports of static pods always are."""

import uuid
from pathlib import Path

import pytest

from agent_api.node import unplugged
from agent_api.node.reporter import NodeReporter
from agent_api.node.unplugged import UnpluggedPorts
from agent_api.virtual_machine_index import VirtualMachineIndex
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine, static_pod_uuid
from contrail_config.store import UNPLUGGED_HOLD
from tests.agent_api.conftest import WaitForSync
from tests.agent_api.node.conftest import MakeReporter, RecordedReports
from tests.support.fake_clock import FakeClock
from tests.support.served_agent import ServedAgent, instance_port_of, port_of, serve_agent, until
from tests.support.virtual_machines import make_pending, make_virtual_machine, pod_interface

UID = str(uuid.uuid4())
VIRTUAL_MACHINE = make_virtual_machine(
    "web-0", uid=UID, interfaces=tuple(pod_interface(UID, index) for index in range(2))
)
INTERFACES = [interface.uuid for interface in VIRTUAL_MACHINE.interfaces]


async def plug(served: ServedAgent, virtual_machine: VirtualMachine = VIRTUAL_MACHINE) -> None:
    ports = [port_of(virtual_machine.uuid, interface.uuid) for interface in virtual_machine.interfaces]
    async with served.unix.post("/vm", json=ports) as answer:
        assert answer.status == 200


async def unplug(served: ServedAgent, below: str = UID) -> None:
    async with served.unix.delete(f"/vm/{below}") as answer:
        assert answer.status == 200


@pytest.fixture
async def plugged(
    store: SqliteStore, served: ServedAgent, wait_for_sync: WaitForSync, reporter: NodeReporter
) -> ServedAgent:
    """An agent with a reporter, and a pod with two plugged ports."""
    await store.put_virtual_machine(VIRTUAL_MACHINE)
    await wait_for_sync()
    await plug(served)
    return served


@pytest.fixture
async def force_deleted(store: SqliteStore, plugged: ServedAgent, wait_for_sync: WaitForSync) -> ServedAgent:
    """The same after the pod was force-deleted: its VirtualMachine is gone, its ports are plugged."""
    await store.delete_virtual_machine(UID)
    await wait_for_sync()
    return plugged


async def last(reporter: NodeReporter, reports: RecordedReports) -> tuple[int, list[str]]:
    """Returns the pending deletes and the unplugged interfaces of the newest report."""
    await reporter.report()
    return reports.written[-1].pending_deletes, sorted(reports.written[-1].unplugged)


async def test_an_orderly_deletion_is_not_reported(
    store: SqliteStore,
    plugged: ServedAgent,
    wait_for_sync: WaitForSync,
    reporter: NodeReporter,
    reports: RecordedReports,
) -> None:
    assert await last(reporter, reports) == (0, [])
    await unplug(plugged)
    await store.delete_virtual_machine(UID)
    await wait_for_sync()
    await reporter.report()
    assert len(reports.written) == 1


async def test_ports_of_static_pods_are_always_reported(
    store: SqliteStore,
    served: ServedAgent,
    wait_for_sync: WaitForSync,
    reporter: NodeReporter,
    reports: RecordedReports,
) -> None:
    """The deletion of its mirror pod alone proves nothing."""
    uid = static_pod_uuid("default", "proxy", "cafe")
    virtual_machine = make_virtual_machine("proxy", uid=uid, config_hash="cafe")
    await store.put_virtual_machine(virtual_machine)
    await wait_for_sync()
    await plug(served, virtual_machine)
    assert await last(reporter, reports) == (0, [])
    await unplug(served, uid)
    assert await last(reporter, reports) == (0, [virtual_machine.interfaces[0].uuid])
    await plug(served, virtual_machine)
    assert await last(reporter, reports) == (0, [])


async def test_a_port_that_outlives_its_virtual_machine_is_pending_until_it_is_unplugged(
    force_deleted: ServedAgent, reporter: NodeReporter, reports: RecordedReports
) -> None:
    assert await last(reporter, reports) == (2, [])
    await unplug(force_deleted, f"{UID}/{INTERFACES[0]}")
    assert await last(reporter, reports) == (1, INTERFACES[:1])
    await unplug(force_deleted)
    assert await last(reporter, reports) == (0, sorted(INTERFACES))


async def test_a_reason_to_wait_is_no_virtual_machine_of_the_port(
    store: SqliteStore,
    force_deleted: ServedAgent,
    wait_for_sync: WaitForSync,
    reporter: NodeReporter,
    reports: RecordedReports,
) -> None:
    await store.put_pending(make_pending("web-0", uid=UID))
    await wait_for_sync()
    assert await last(reporter, reports) == (2, [])
    await unplug(force_deleted)
    assert await last(reporter, reports) == (0, sorted(INTERFACES))


async def test_an_unplugged_port_is_reported_as_long_as_addresses_are_held(
    force_deleted: ServedAgent, reporter: NodeReporter, reports: RecordedReports, clock: FakeClock
) -> None:
    await unplug(force_deleted)
    clock.advance(UNPLUGGED_HOLD - 1)
    assert await last(reporter, reports) == (0, sorted(INTERFACES))
    clock.advance(1)
    assert await last(reporter, reports) == (0, [])


async def test_a_port_plugged_again_is_not_reported(
    force_deleted: ServedAgent, reporter: NodeReporter, reports: RecordedReports
) -> None:
    await unplug(force_deleted)
    await plug(force_deleted)
    assert await last(reporter, reports) == (2, [])


async def test_instance_ports_are_ignored(
    plugged: ServedAgent, reporter: NodeReporter, reports: RecordedReports
) -> None:
    vmi = str(uuid.uuid4())
    async with plugged.unix.post("/port", json=instance_port_of(str(uuid.uuid4()), vmi)) as answer:
        assert answer.status == 200
    assert await last(reporter, reports) == (0, [])
    async with plugged.unix.delete(f"/port/{vmi}") as answer:
        assert answer.status == 200
    assert await last(reporter, reports) == (0, [])


async def test_the_number_of_interfaces_is_limited(
    force_deleted: ServedAgent, make_reporter: MakeReporter, reports: RecordedReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unplugged, "_MAX_INTERFACES", 1)
    reporter = make_reporter(force_deleted)
    await unplug(force_deleted, f"{UID}/{INTERFACES[0]}")
    await unplug(force_deleted, f"{UID}/{INTERFACES[1]}")
    assert await last(reporter, reports) == (0, INTERFACES[1:])


class TestRestartedAgent:
    """Ports are persisted, so the next agent finds what a killed one left."""

    async def test_finds_ports_that_outlived_their_virtual_machines_while_it_was_down(
        self, store: SqliteStore, tmp_path: Path, make_reporter: MakeReporter, reports: RecordedReports
    ) -> None:
        await store.put_virtual_machine(VIRTUAL_MACHINE)
        async with serve_agent(store, tmp_path) as killed:
            await plug(killed)  # and it never reports
        await store.delete_virtual_machine(UID)
        async with serve_agent(store, tmp_path) as served:
            reporter = make_reporter(served)
            await until(lambda: served.agent.virtual_machines.synced)
            assert await last(reporter, reports) == (2, [])
            await unplug(served)
            assert await last(reporter, reports) == (0, sorted(INTERFACES))

    async def test_reports_no_port_before_the_virtual_machines_are_listed(
        self, served: ServedAgent, clock: FakeClock
    ) -> None:
        ports = UnpluggedPorts(VirtualMachineIndex(), served.agent.ports, clock=clock)
        await plug(served)
        assert ports.pending() == 0
        await unplug(served)
        assert ports.interfaces() == ()
