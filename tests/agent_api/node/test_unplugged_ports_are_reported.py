"""A port that outlives its machine is pending, and reported once it is unplugged; those of static pods always are."""

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
from tests.agent_api.conftest import Settle
from tests.agent_api.node.conftest import KeptReports, MakeReporter
from tests.support.agent import ServedAgent, instance_port_of, port_of, serve_agent, until
from tests.support.clock import FakeClock
from tests.support.machines import make_machine, pod_interface

UID = str(uuid.uuid4())
MACHINE = make_machine("web-0", uid=UID, interfaces=tuple(pod_interface(UID, index) for index in range(2)))
INTERFACES = [interface.uuid for interface in MACHINE.interfaces]


async def plug(served: ServedAgent, machine: VirtualMachine = MACHINE) -> None:
    ports = [port_of(machine.uuid, interface.uuid) for interface in machine.interfaces]
    async with served.unix.post("/vm", json=ports) as answer:
        assert answer.status == 200


async def unplug(served: ServedAgent, below: str = UID) -> None:
    async with served.unix.delete(f"/vm/{below}") as answer:
        assert answer.status == 200


@pytest.fixture
async def plugged(store: SqliteStore, served: ServedAgent, settle: Settle, reporter: NodeReporter) -> ServedAgent:
    """An agent that is followed, with a pod whose two ports are plugged."""
    await store.put_virtual_machine(MACHINE)
    await settle()
    await plug(served)
    return served


@pytest.fixture
async def forced(store: SqliteStore, plugged: ServedAgent, settle: Settle) -> ServedAgent:
    """The same after the pod was deleted by force: its machine is gone, its ports are plugged."""
    await store.delete_virtual_machine(UID)
    await settle()
    return plugged


async def last(reporter: NodeReporter, reports: KeptReports) -> tuple[int, list[str]]:
    """The pending deletes and the unplugged interfaces of the newest report."""
    await reporter.report()
    return reports.written[-1].pending_deletes, sorted(reports.written[-1].unplugged)


async def test_after_an_orderly_deletion_there_is_nothing_to_tell(
    store: SqliteStore, plugged: ServedAgent, settle: Settle, reporter: NodeReporter, reports: KeptReports
) -> None:
    assert await last(reporter, reports) == (0, [])
    await unplug(plugged)
    await store.delete_virtual_machine(UID)
    await settle()
    await reporter.report()
    assert len(reports.written) == 1


async def test_of_a_static_pod_it_is_told_in_any_case(
    store: SqliteStore, served: ServedAgent, settle: Settle, reporter: NodeReporter, reports: KeptReports
) -> None:
    """Nobody else knows whether its mirror went with it."""
    uid = static_pod_uuid("default", "proxy", "cafe")
    machine = make_machine("proxy", uid=uid, config_hash="cafe")
    await store.put_virtual_machine(machine)
    await settle()
    await plug(served, machine)
    assert await last(reporter, reports) == (0, [])
    await unplug(served, uid)
    assert await last(reporter, reports) == (0, [machine.interfaces[0].uuid])
    await plug(served, machine)
    assert await last(reporter, reports) == (0, [])


async def test_a_port_that_outlives_its_machine_is_pending_until_it_is_unplugged(
    forced: ServedAgent, reporter: NodeReporter, reports: KeptReports
) -> None:
    assert await last(reporter, reports) == (2, [])
    await unplug(forced, f"{UID}/{INTERFACES[0]}")
    assert await last(reporter, reports) == (1, INTERFACES[:1])
    await unplug(forced)
    assert await last(reporter, reports) == (0, sorted(INTERFACES))


async def test_it_is_told_for_as_long_as_addresses_may_be_held_back(
    forced: ServedAgent, reporter: NodeReporter, reports: KeptReports, clock: FakeClock
) -> None:
    await unplug(forced)
    clock.advance(UNPLUGGED_HOLD - 1)
    assert await last(reporter, reports) == (0, sorted(INTERFACES))
    clock.advance(1)
    assert await last(reporter, reports) == (0, [])


async def test_what_is_plugged_again_is_not_unplugged(
    forced: ServedAgent, reporter: NodeReporter, reports: KeptReports
) -> None:
    await unplug(forced)
    await plug(forced)
    assert await last(reporter, reports) == (2, [])


async def test_ports_of_instances_have_no_machine_and_wait_for_nobody(
    plugged: ServedAgent, reporter: NodeReporter, reports: KeptReports
) -> None:
    vmi = str(uuid.uuid4())
    async with plugged.unix.post("/port", json=instance_port_of(str(uuid.uuid4()), vmi)) as answer:
        assert answer.status == 200
    assert await last(reporter, reports) == (0, [])
    async with plugged.unix.delete(f"/port/{vmi}") as answer:
        assert answer.status == 200
    assert await last(reporter, reports) == (0, [])


async def test_a_report_holds_no_more_than_an_object_can(
    forced: ServedAgent, make_reporter: MakeReporter, reports: KeptReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unplugged, "_MAX_INTERFACES", 1)
    reporter = make_reporter(forced)
    await unplug(forced, f"{UID}/{INTERFACES[0]}")
    await unplug(forced, f"{UID}/{INTERFACES[1]}")
    assert await last(reporter, reports) == (0, INTERFACES[1:])


class TestAnAgentThatStartsAnew:
    """Ports are kept on disk, and what an agent is killed over is found by the next one."""

    async def test_it_finds_the_ports_that_outlived_their_machines_while_it_was_away(
        self, store: SqliteStore, tmp_path: Path, make_reporter: MakeReporter, reports: KeptReports
    ) -> None:
        await store.put_virtual_machine(MACHINE)
        async with serve_agent(store, tmp_path) as killed:
            await plug(killed)  # and it never reports
        await store.delete_virtual_machine(UID)
        async with serve_agent(store, tmp_path) as served:
            reporter = make_reporter(served)
            await until(lambda: served.agent.virtual_machines.synced)
            assert await last(reporter, reports) == (2, [])
            await unplug(served)
            assert await last(reporter, reports) == (0, sorted(INTERFACES))

    async def test_before_its_machines_are_listed_it_takes_no_port_for_left_over(
        self, served: ServedAgent, clock: FakeClock
    ) -> None:
        ports = UnpluggedPorts(VirtualMachineIndex(), served.agent.ports, clock=clock)
        await plug(served)
        assert ports.pending() == 0
        await unplug(served)
        assert ports.interfaces() == ()
