"""Stale ports are unplugged: no others, and none that was plugged meanwhile."""

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
from tests.support.netns import Netns
from tests.support.served_agent import instance_port_of, port_of, until
from tests.support.stored_ports import container_port, instance_port
from tests.support.virtual_machines import SAMPLE_VM

GONE, THERE, OTHER = (f"159b591c-e57e-11f1-b951-02fc0000000{number}" for number in (1, 2, 3))


@pytest.fixture
def directory(tmp_path: Path) -> PortDirectory:
    directory = PortDirectory(str(tmp_path))
    directory.load()
    return directory


@pytest.fixture
async def table(directory: PortDirectory) -> PortTable:
    """Two container ports that an earlier process persisted."""
    ports = [container_port(GONE, host_ifname="tap-gone"), container_port(THERE, host_ifname="tap-there")]
    await asyncio.to_thread(directory.change, write=ports)
    table = PortTable(directory)
    await table.load()
    return table


def cleaner(table: PortTable, *devices: str, timeout: float = 0) -> StalePortCleaner:
    """Returns a cleaner for a host with these devices."""
    return StalePortCleaner(table, timeout=timeout, device_exists=lambda name: name in devices)


def plugged(table: PortTable) -> set[str]:
    return {port.vmi_uuid for port in table.all()}


async def test_all_ports_are_loaded_regardless_of_their_devices(table: PortTable) -> None:
    assert plugged(table) == {GONE, THERE}


class TestAfterTheStart:
    """Loaded ports are accepted at first; after the timeout their devices are checked."""

    async def test_ports_without_device_are_unplugged_logged_and_notified(
        self, table: PortTable, directory: PortDirectory
    ) -> None:
        notified: list[str] = []
        table.on_unplugged(lambda ports: notified.extend(port.vmi_uuid for port in ports))
        await cleaner(table, "tap-there").clean_after_start()
        assert plugged(table) == {THERE}
        assert notified == [GONE]
        assert [port.vmi_uuid for port in await asyncio.to_thread(directory.load)] == [THERE]

    async def test_a_port_plugged_again_meanwhile_stays_even_without_device(self, table: PortTable) -> None:
        cleaning = asyncio.create_task(cleaner(table, timeout=0.01).clean_after_start())
        await asyncio.sleep(0)
        await table.plug([container_port(GONE, vm_id="container-2")])
        await cleaning
        assert plugged(table) == {GONE}

    async def test_a_port_unplugged_meanwhile_is_ignored(self, table: PortTable) -> None:
        cleaning = asyncio.create_task(cleaner(table, timeout=0.01).clean_after_start())
        await asyncio.sleep(0)
        await table.unplug(SAMPLE_VM)
        await cleaning
        assert plugged(table) == set()

    async def test_a_port_whose_file_cannot_be_removed_stays_and_the_agent_continues(
        self, table: PortTable, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        place = tmp_path / "vm" / "k8s__default__p1" / GONE
        place.unlink()
        place.mkdir()
        await cleaner(table, "tap-there").clean_after_start()
        assert plugged(table) == {GONE, THERE}
        assert "Is a directory" in caplog.text

    async def test_a_remote_port_needs_no_device(self, table: PortTable) -> None:
        await table.plug([instance_port(OTHER, type=2, system_name=OTHER)])
        await cleaner(table).clean_after_start()
        assert plugged(table) == {OTHER}

    @pytest.mark.parametrize("kind", [0, 1])
    async def test_other_instance_ports_are_unplugged_without_their_device(self, table: PortTable, kind: int) -> None:
        await table.plug([instance_port(OTHER, type=kind)])
        await cleaner(table, "tap-gone", "tap-there").clean_after_start()
        assert plugged(table) == {GONE, THERE}


class TestAfterSyncports:
    """`POST /syncports`: ports not posted again in time are unplugged, if clients post that type again at all."""

    @pytest.mark.parametrize("kind", [0, 2])
    async def test_exactly_the_ports_not_posted_again_are_unplugged(self, table: PortTable, kind: int) -> None:
        reposted, stale = instance_port(OTHER, type=kind), instance_port(GONE, type=kind)
        await table.plug([reposted, stale])
        await synced(table, reposted)
        assert plugged(table) == {OTHER, THERE}

    async def test_a_port_posted_later_stays(self, table: PortTable) -> None:
        stale = cleaner(table, "tap-gone", "tap-there")
        stale.sync()
        await table.plug([instance_port(OTHER)])
        await stale.clean_after_sync()
        assert OTHER in plugged(table)

    async def test_container_ports_stay_as_long_as_their_device_exists(self, table: PortTable) -> None:
        stale = cleaner(table, "tap-there")
        stale.sync()
        await stale.clean_after_sync()
        assert plugged(table) == {THERE}

    async def test_only_the_stale_one_of_two_interfaces_is_unplugged(self, table: PortTable) -> None:
        stale = cleaner(table)
        stale.sync()
        await table.plug([container_port(THERE)])
        await stale.clean_after_sync()
        assert plugged(table) == {THERE}

    async def test_a_namespace_port_stays_as_long_as_its_device_exists(self, table: PortTable) -> None:
        await table.plug([instance_port(OTHER, type=1, system_name="tap-netns")])
        for devices, there in ((("tap-netns",), True), ((), False)):
            stale = cleaner(table, *devices)
            stale.sync()
            await stale.clean_after_sync()
            assert (OTHER in plugged(table)) is there

    async def test_enabling_a_port_does_not_count_as_posting_it(self, table: PortTable) -> None:
        await table.plug([instance_port(OTHER, type=2)])
        stale = cleaner(table)
        stale.sync()
        await table.set_link_state(OTHER, 1)
        await stale.clean_after_sync()
        assert OTHER not in plugged(table)

    async def test_a_second_sync_gets_the_full_timeout(self, table: PortTable) -> None:
        early = instance_port(OTHER)
        await table.plug([early])
        stale = cleaner(table, "tap-gone", "tap-there", timeout=0.01)
        stale.sync()
        first = asyncio.create_task(stale.clean_after_sync())
        await asyncio.sleep(0)
        await table.plug([early])
        stale.sync()
        await first
        assert OTHER in plugged(table)
        await stale.clean_after_sync()
        assert OTHER not in plugged(table)

    async def test_a_sync_before_the_ports_are_loaded_is_rejected(self, directory: PortDirectory) -> None:
        with pytest.raises(NotReadyError, match="not loaded yet"):
            cleaner(PortTable(directory)).sync()

    async def test_a_running_agent_cleans_after_start_and_after_each_sync(
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
    """Syncs and posts these ports again, on a host with only the device of THERE."""
    stale = cleaner(table, "tap-there")
    stale.sync()
    await table.plug(again)
    await stale.clean_after_sync()


def test_device_exists_looks_in_the_own_network_namespace(make_netns: Callable[[str], Netns]) -> None:
    node = make_netns("node")
    node.ip("link", "add", "tap-there", "type", "veth", "peer", "name", "peer")
    with node.inside():
        assert device_exists("tap-there")
        assert not device_exists("tap-gone")
        assert not device_exists("a-name-too-long-for-a-device")
    assert not device_exists(f"tap{os.getpid()}")
