"""`..._nowait` changes run while the disk is fast and no other change is in progress; otherwise they do nothing."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_api.errors import StorageError
from agent_api.ports.directory import PortDirectory
from agent_api.ports.disk_latency import DiskLatency
from agent_api.ports.table import PortTable
from tests.agent_api.conftest import change_in_progress
from tests.support.served_agent import until
from tests.support.stored_ports import container_port, container_ports
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def passing(self, seconds: float, *, then: OSError | None = None) -> Callable[[], None]:
        """Returns a change that takes so long and raises `then` if given."""

        def change() -> None:
            self.seconds += seconds
            if then is not None:
                raise then

        return change


@pytest.fixture
async def ports(tmp_path: Path) -> PortTable:
    ports = PortTable(PortDirectory(str(tmp_path)))
    await ports.load()
    return ports


def files(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "vm").rglob("*") if path.is_file()]


async def test_nowait_changes_are_persisted(ports: PortTable, tmp_path: Path) -> None:
    assert ports.plug_nowait([container_port(vm_id="c1")])
    assert (list(ports.by_virtual_machine(SAMPLE_VM)), files(tmp_path)) == ([SAMPLE_VMI], [SAMPLE_VMI])
    assert ports.unplug_nowait(SAMPLE_VM, vmi_uuid=None, container="another")
    assert list(ports.by_virtual_machine(SAMPLE_VM)) == [SAMPLE_VMI]
    assert ports.unplug_nowait(SAMPLE_VM, vmi_uuid=SAMPLE_VMI, container="c1")
    assert (len(ports), files(tmp_path)) == (0, [])


async def test_nowait_does_nothing_before_the_ports_are_loaded(tmp_path: Path) -> None:
    ports = PortTable(PortDirectory(str(tmp_path)))
    assert not ports.plug_nowait([container_port()])
    assert len(ports) == 0


async def test_nowait_does_nothing_while_a_change_is_in_progress(ports: PortTable) -> None:
    async with change_in_progress(ports.executor):
        other = asyncio.create_task(ports.plug([container_port(vm_id="first")]))
        await until(lambda: len(ports.executor) == 2)
        assert not ports.plug_nowait([container_port(vm_id="second")])
    await other
    assert [port.vm_id for port in container_ports(ports)] == ["first"]


async def test_a_disk_error_is_raised_and_nothing_is_plugged(ports: PortTable, tmp_path: Path) -> None:
    port = container_port()
    (tmp_path / "vm" / port.vm_name).write_text("no folder")
    with pytest.raises(StorageError, match="File exists"):
        ports.plug_nowait([port])
    assert len(ports) == 0


async def test_nowait_does_nothing_on_a_slow_disk(tmp_path: Path) -> None:
    clock = Clock()
    disk = DiskLatency(clock)
    ports = PortTable(PortDirectory(str(tmp_path)), disk=disk)
    await ports.load()
    disk.measure(clock.passing(0.1))
    assert not ports.plug_nowait([container_port()])
    clock.seconds += 60
    assert ports.plug_nowait([container_port()])


class TestDiskLatency:
    """A disk counts as slow for a minute after a slow change."""

    def test_is_fast_until_a_change_was_slow(self) -> None:
        clock = Clock()
        latency = DiskLatency(clock)
        latency.measure(clock.passing(0.019))
        assert latency.is_fast
        latency.measure(clock.passing(0.021))
        assert not latency.is_fast

    def test_is_slow_after_a_slow_failure(self) -> None:
        clock = Clock()
        latency = DiskLatency(clock)
        with pytest.raises(OSError, match="broken"):
            latency.measure(clock.passing(1, then=OSError("broken")))
        assert not latency.is_fast

    def test_is_fast_again_after_a_minute(self) -> None:
        clock = Clock()
        latency = DiskLatency(clock)
        latency.measure(clock.passing(1))
        clock.seconds += 59.9
        assert not latency.is_fast
        clock.seconds += 0.1
        assert latency.is_fast
