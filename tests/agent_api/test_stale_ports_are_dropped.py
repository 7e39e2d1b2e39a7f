"""Ports whose device is gone are dropped a while after the start, but for what was plugged meanwhile."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_api.ports.directory import PortDirectory
from agent_api.ports.port import Port
from agent_api.ports.stale import device_exists, drop_stale_ports
from agent_api.ports.table import PortTable
from tests.support.machines import SAMPLE_VM, SAMPLE_VN
from tests.support.netns import Netns

GONE, THERE = "159b591c-e57e-11f1-b951-02fc00000001", "159b591c-e57e-11f1-b951-02fc00000002"


def make_port(vmi_uuid: str, *, device: str, container: str = "container-1") -> Port:
    return Port(
        vm_uuid=SAMPLE_VM,
        vn_uuid=SAMPLE_VN,
        vmi_uuid=vmi_uuid,
        vm_id=container,
        vm_name="k8s__default__p1",
        host_ifname=device,
    )


@pytest.fixture
def directory(tmp_path: Path) -> PortDirectory:
    directory = PortDirectory(str(tmp_path))
    directory.change(write=[make_port(GONE, device="tap-gone"), make_port(THERE, device="tap-there")])
    return directory


@pytest.fixture
async def table(directory: PortDirectory) -> PortTable:
    table = PortTable(directory)
    await table.load()
    return table


def only(*names: str) -> Callable[[str], bool]:
    return lambda name: name in names


async def test_all_are_there_after_a_restart_whatever_their_devices(table: PortTable) -> None:
    assert {port.vmi_uuid for port in table.all()} == {GONE, THERE}


async def test_those_without_device_are_dropped_told_and_forgotten(table: PortTable, directory: PortDirectory) -> None:
    told: list[str] = []
    table.on_unplugged(told.extend)
    await drop_stale_ports(table, after=0, device_exists=only("tap-there"))
    assert [port.vmi_uuid for port in table.all()] == [THERE]
    assert told == [GONE]
    assert [port.vmi_uuid for port in await asyncio.to_thread(directory.load)] == [THERE]


async def test_one_that_was_plugged_anew_meanwhile_stays_even_without_device(table: PortTable) -> None:
    cleaning = asyncio.create_task(drop_stale_ports(table, after=0.01, device_exists=only()))
    await asyncio.sleep(0)
    await table.plug([make_port(GONE, device="tap-gone", container="container-2")])
    await cleaning
    assert [(port.vmi_uuid, port.vm_id) for port in table.all()] == [(GONE, "container-2")]


async def test_one_that_was_freed_meanwhile_is_not_missed(table: PortTable) -> None:
    cleaning = asyncio.create_task(drop_stale_ports(table, after=0.01, device_exists=only()))
    await asyncio.sleep(0)
    await table.unplug(SAMPLE_VM)
    await cleaning
    assert table.all() == []


async def test_one_whose_file_cannot_be_removed_stays_and_does_not_end_the_agent(
    table: PortTable, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "vm" / "k8s__default__p1" / GONE
    place.unlink()
    place.mkdir()
    await drop_stale_ports(table, after=0, device_exists=only("tap-there"))
    assert {port.vmi_uuid for port in table.all()} == {GONE, THERE}
    assert "Is a directory" in caplog.text


def test_a_device_is_looked_for_in_the_own_network_namespace(make_netns: Callable[[str], Netns]) -> None:
    node = make_netns("node")
    node.ip("link", "add", "tap-there", "type", "veth", "peer", "name", "peer")
    with node.inside():
        assert device_exists("tap-there")
        assert not device_exists("tap-gone")
        assert not device_exists("a-name-that-no-device-can-bear")
    assert not device_exists(f"tap{os.getpid()}")
