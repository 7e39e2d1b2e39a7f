"""Ports that nobody has any more are dropped: no others, and none that was plugged meanwhile."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_api.errors import NotReadyError
from agent_api.ports.directory import PortDirectory
from agent_api.ports.port import Port
from agent_api.ports.stale import StalePortCleaner, device_exists
from agent_api.ports.table import PortTable
from tests.agent_api.conftest import StartAgent
from tests.support.agent import instance_port_of, port_of, until
from tests.support.kept_ports import container_port, instance_port
from tests.support.machines import SAMPLE_VM
from tests.support.netns import Netns

GONE, THERE, OTHER = (f"159b591c-e57e-11f1-b951-02fc0000000{number}" for number in (1, 2, 3))


@pytest.fixture
def directory(tmp_path: Path) -> PortDirectory:
    directory = PortDirectory(str(tmp_path))
    directory.load()
    return directory


@pytest.fixture
async def table(directory: PortDirectory) -> PortTable:
    """Two ports of a container that an earlier process kept."""
    ports = [container_port(GONE, host_ifname="tap-gone"), container_port(THERE, host_ifname="tap-there")]
    await asyncio.to_thread(directory.change, write=ports)
    table = PortTable(directory)
    await table.load()
    return table


def cleaner(table: PortTable, *devices: str, after: float = 0) -> StalePortCleaner:
    """Cleans a table on a host that has these devices."""
    return StalePortCleaner(table, timeout=after, device_exists=lambda name: name in devices)


def plugged(table: PortTable) -> set[str]:
    return {port.vmi_uuid for port in table.all()}


async def test_all_are_there_after_a_restart_whatever_their_devices(table: PortTable) -> None:
    assert plugged(table) == {GONE, THERE}


class TestAfterTheStart:
    """Those of before are believed for a while, and then asked for their devices."""

    async def test_those_without_device_are_dropped_told_and_forgotten(
        self, table: PortTable, directory: PortDirectory
    ) -> None:
        told: list[str] = []
        table.on_unplugged(lambda ports: told.extend(port.vmi_uuid for port in ports))
        await cleaner(table, "tap-there").clean_after_start()
        assert plugged(table) == {THERE}
        assert told == [GONE]
        assert [port.vmi_uuid for port in await asyncio.to_thread(directory.load)] == [THERE]

    async def test_one_that_was_plugged_anew_meanwhile_stays_even_without_device(self, table: PortTable) -> None:
        cleaning = asyncio.create_task(cleaner(table, after=0.01).clean_after_start())
        await asyncio.sleep(0)
        await table.plug([container_port(GONE, vm_id="container-2")])
        await cleaning
        assert plugged(table) == {GONE}

    async def test_one_that_was_freed_meanwhile_is_not_missed(self, table: PortTable) -> None:
        cleaning = asyncio.create_task(cleaner(table, after=0.01).clean_after_start())
        await asyncio.sleep(0)
        await table.unplug(SAMPLE_VM)
        await cleaning
        assert plugged(table) == set()

    async def test_one_whose_file_cannot_be_removed_stays_and_does_not_end_the_agent(
        self, table: PortTable, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        place = tmp_path / "vm" / "k8s__default__p1" / GONE
        place.unlink()
        place.mkdir()
        await cleaner(table, "tap-there").clean_after_start()
        assert plugged(table) == {GONE, THERE}
        assert "Is a directory" in caplog.text

    async def test_a_remote_port_has_no_device_here_and_stays(self, table: PortTable) -> None:
        await table.plug([instance_port(OTHER, type=2, system_name=OTHER)])
        await cleaner(table).clean_after_start()
        assert plugged(table) == {OTHER}

    @pytest.mark.parametrize("kind", [0, 1])
    async def test_the_others_of_instances_go_with_their_devices(self, table: PortTable, kind: int) -> None:
        await table.plug([instance_port(OTHER, type=kind)])
        await cleaner(table, "tap-gone", "tap-there").clean_after_start()
        assert plugged(table) == {GONE, THERE}


class TestAfterAClientSaidThatItPostsItsPortsAgain:
    """`POST /syncports`: what it does not post in time is gone, if it is of the kind that such clients post."""

    @pytest.mark.parametrize("kind", [0, 2])
    async def test_exactly_those_that_were_not_posted_again_are_dropped(self, table: PortTable, kind: int) -> None:
        kept, forgotten = instance_port(OTHER, type=kind), instance_port(GONE, type=kind)
        await table.plug([kept, forgotten])
        await synced(table, kept)
        assert plugged(table) == {OTHER, THERE}

    async def test_one_that_came_after_that_stays(self, table: PortTable) -> None:
        stale = cleaner(table, "tap-gone", "tap-there")
        stale.sync()
        await table.plug([instance_port(OTHER)])
        await stale.clean_after_sync()
        assert OTHER in plugged(table)

    async def test_ports_of_containers_stay_as_long_as_their_device_is_there(self, table: PortTable) -> None:
        stale = cleaner(table, "tap-there")
        stale.sync()
        await stale.clean_after_sync()
        assert plugged(table) == {THERE}

    async def test_of_a_machine_with_two_interfaces_only_the_stale_one_goes(self, table: PortTable) -> None:
        stale = cleaner(table)
        stale.sync()
        await table.plug([container_port(THERE)])
        await stale.clean_after_sync()
        assert plugged(table) == {THERE}

    async def test_a_namespaces_port_stays_as_long_as_its_device_is_there(self, table: PortTable) -> None:
        await table.plug([instance_port(OTHER, type=1, system_name="tap-netns")])
        for devices, there in ((("tap-netns",), True), ((), False)):
            stale = cleaner(table, *devices)
            stale.sync()
            await stale.clean_after_sync()
            assert (OTHER in plugged(table)) is there

    async def test_one_that_is_enabled_meanwhile_is_not_posted_again_by_that(self, table: PortTable) -> None:
        await table.plug([instance_port(OTHER, type=2)])
        stale = cleaner(table)
        stale.sync()
        await table.set_link_state(OTHER, 1)
        await stale.clean_after_sync()
        assert OTHER not in plugged(table)

    async def test_who_says_so_a_second_time_has_the_whole_time_anew(self, table: PortTable) -> None:
        early = instance_port(OTHER)
        await table.plug([early])
        stale = cleaner(table, "tap-gone", "tap-there", after=0.01)
        stale.sync()
        first = asyncio.create_task(stale.clean_after_sync())
        await asyncio.sleep(0)
        await table.plug([early])
        stale.sync()
        await first
        assert OTHER in plugged(table)
        await stale.clean_after_sync()
        assert OTHER not in plugged(table)

    async def test_nobody_can_say_so_before_the_ports_are_reloaded(self, directory: PortDirectory) -> None:
        with pytest.raises(NotReadyError, match="not loaded yet"):
            cleaner(PortTable(directory)).sync()

    async def test_a_running_agent_cleans_after_its_start_and_after_each_request(
        self, start_agent: StartAgent, tmp_path: Path
    ) -> None:
        served = await start_agent(stale_timeout=0.01, device_exists=lambda _name: False)
        for _ in range(2):
            await served.tcp.post("/port", json=instance_port_of(SAMPLE_VM, OTHER))
            await served.tcp.post("/vm", json=port_of(SAMPLE_VM, GONE))
            async with served.tcp.post("/syncports") as answer:
                assert (answer.status, await answer.json()) == (200, {})
            await until(lambda: not len(served.agent.ports))


async def synced(table: PortTable, *again: Port) -> None:
    """A client posts these again after it said so, on a host that has only the device of THERE."""
    stale = cleaner(table, "tap-there")
    stale.sync()
    await table.plug(again)
    await stale.clean_after_sync()


def test_a_device_is_looked_for_in_the_own_network_namespace(make_netns: Callable[[str], Netns]) -> None:
    node = make_netns("node")
    node.ip("link", "add", "tap-there", "type", "veth", "peer", "name", "peer")
    with node.inside():
        assert device_exists("tap-there")
        assert not device_exists("tap-gone")
        assert not device_exists("a-name-that-no-device-can-bear")
    assert not device_exists(f"tap{os.getpid()}")
