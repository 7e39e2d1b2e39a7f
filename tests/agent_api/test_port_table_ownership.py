"""Port ownership: a port belongs to its latest container; the teardown of an older one never unplugs it."""

import asyncio
import uuid
from pathlib import Path

import pytest

from agent_api.errors import NotReadyError
from agent_api.ports.container import ContainerPort
from agent_api.ports.directory import PortDirectory
from agent_api.ports.table import PortTable
from tests.agent_api.conftest import StartAgent, change_in_progress
from tests.support.served_agent import ServedAgent, port_of, until
from tests.support.stored_ports import container_ports
from tests.support.virtual_machines import SAMPLE_VM

ETH0, ETH1 = "159b591c-e57e-11f1-b951-02fc00000001", "159b591c-e57e-11f1-b951-02fc00000002"
OLD, NEW = "container-1", "container-2"


async def plug(served: ServedAgent, *vmi_uuids: str, container: str, vm_uuid: str = SAMPLE_VM) -> None:
    ports = [port_of(vm_uuid, vmi_uuid, vm_id=container) for vmi_uuid in vmi_uuids]
    async with served.tcp.post("/vm", json=ports) as answer:
        assert (answer.status, await answer.json()) == (200, {})


async def unplug(served: ServedAgent, path: str) -> None:
    async with served.tcp.delete(f"/vm/{path}") as answer:
        assert (answer.status, await answer.json()) == (200, {})


def owners(served: ServedAgent, vm_uuid: str = SAMPLE_VM) -> dict[str, str]:
    ports = container_ports(served.agent.ports)
    return {port.vmi_uuid: port.vm_id for port in ports if port.vm_uuid == vm_uuid}


async def test_a_container_unplugs_its_own_ports(served: ServedAgent) -> None:
    await plug(served, ETH0, ETH1, container=OLD)
    await unplug(served, f"{SAMPLE_VM}?vm-id={OLD}")
    assert owners(served) == {}


async def test_the_late_teardown_of_an_old_container_unplugs_no_port_of_the_new_one(served: ServedAgent) -> None:
    await plug(served, ETH0, ETH1, container=OLD)
    await plug(served, ETH0, container=NEW)
    await unplug(served, f"{SAMPLE_VM}?vm-id={OLD}")
    assert owners(served) == {ETH0: NEW}


async def test_a_single_interface_can_be_unplugged(served: ServedAgent) -> None:
    await plug(served, ETH0, ETH1, container=OLD)
    await unplug(served, f"{SAMPLE_VM}/{ETH1}?vm-id={OLD}")
    assert owners(served) == {ETH0: OLD}


async def test_an_interface_of_another_container_stays_plugged(served: ServedAgent) -> None:
    await plug(served, ETH0, container=NEW)
    await unplug(served, f"{SAMPLE_VM}/{ETH0}?vm-id={OLD}")
    assert owners(served) == {ETH0: NEW}


async def test_without_a_container_all_ports_of_the_virtual_machine_are_unplugged(served: ServedAgent) -> None:
    other = str(uuid.uuid4())
    await plug(served, ETH0, container=OLD)
    await plug(served, ETH1, container=NEW)
    await plug(served, str(uuid.uuid4()), container=NEW, vm_uuid=other)
    await unplug(served, SAMPLE_VM)
    assert owners(served) == {}
    assert len(owners(served, other)) == 1


async def test_unplugging_a_missing_port_is_no_error(served: ServedAgent) -> None:
    for path in (SAMPLE_VM, f"{SAMPLE_VM}/{ETH0}", f"{SAMPLE_VM}?vm-id={OLD}", f"{SAMPLE_VM}/{ETH0}?vm-id={OLD}"):
        await unplug(served, path)


async def test_an_empty_container_is_rejected_and_unplugs_nothing(served: ServedAgent) -> None:
    await plug(served, ETH0, container=OLD)
    async with served.tcp.delete(f"/vm/{SAMPLE_VM}?vm-id=") as answer:
        assert answer.status == 400
        assert await answer.json() == {"error": "vm-id: must not be empty; omit it or set a value"}
    assert owners(served) == {ETH0: OLD}


async def test_an_interface_can_move_to_another_virtual_machine(served: ServedAgent) -> None:
    other = str(uuid.uuid4())
    await plug(served, ETH0, container=OLD)
    await plug(served, ETH0, container=NEW, vm_uuid=other)
    assert (owners(served), owners(served, other)) == ({}, {ETH0: NEW})
    await unplug(served, SAMPLE_VM)
    assert owners(served, other) == {ETH0: NEW}


async def test_concurrent_changes_are_serialized(served: ServedAgent) -> None:
    rounds = [
        asyncio.create_task(change)
        for number in range(20)
        for change in (
            plug(served, ETH0, ETH1, container=f"container-{number}"),
            unplug(served, f"{SAMPLE_VM}?vm-id=container-{number}"),
        )
    ]
    await asyncio.gather(*rounds)
    loaded = await asyncio.to_thread(PortDirectory(str(served.socket.parent / "ports")).load)
    assert {port.vmi_uuid: port.vm_id for port in loaded if isinstance(port, ContainerPort)} == owners(served)


class TestAddressHold:
    """`is_plugged` and `on_unplugged`, for a manager in the same process."""

    async def test_a_virtual_machine_is_plugged_as_long_as_one_of_its_ports_is(self, served: ServedAgent) -> None:
        assert not served.agent.is_plugged(SAMPLE_VM)
        await plug(served, ETH0, ETH1, container=OLD)
        await unplug(served, f"{SAMPLE_VM}/{ETH0}")
        assert served.agent.is_plugged(SAMPLE_VM)
        await unplug(served, f"{SAMPLE_VM}/{ETH1}")
        assert not served.agent.is_plugged(SAMPLE_VM)

    async def test_an_unplugged_port_is_notified_once_and_a_replaced_one_never(self, served: ServedAgent) -> None:
        notified: list[list[str]] = []
        served.agent.on_unplugged(lambda vmi_uuids: notified.append(sorted(vmi_uuids)))
        await plug(served, ETH0, ETH1, container=OLD)
        await plug(served, ETH0, container=NEW)
        await plug(served, ETH0, container=NEW, vm_uuid=str(uuid.uuid4()))
        await unplug(served, SAMPLE_VM)
        await unplug(served, SAMPLE_VM)
        assert notified == [[ETH1]]

    async def test_ports_of_an_earlier_process_are_known_before_the_agent_runs(self, start_agent: StartAgent) -> None:
        before = await start_agent()
        await plug(before, ETH0, container=OLD)
        ports = PortTable(PortDirectory(str(before.socket.parent / "ports")))
        await ports.load()
        assert list(ports.by_virtual_machine(SAMPLE_VM)) == [ETH0]


async def test_changes_before_the_ports_are_loaded_are_rejected(tmp_path: Path) -> None:
    ports = PortTable(PortDirectory(str(tmp_path)))
    with pytest.raises(NotReadyError, match="not loaded yet"):
        await ports.unplug(SAMPLE_VM)


async def test_a_change_completes_if_its_client_disconnects(served: ServedAgent) -> None:
    executor = served.agent.ports.executor
    async with change_in_progress(executor):
        post = asyncio.create_task(plug(served, ETH0, container=OLD))
        await until(lambda: len(executor) == 2)
        post.cancel()
        await asyncio.gather(post, return_exceptions=True)
    await until(lambda: executor.is_idle)
    assert owners(served) == {ETH0: OLD}
