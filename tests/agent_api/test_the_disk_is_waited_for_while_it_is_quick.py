"""Changes at once: made while the disk is quick and nothing else is under way, else nothing is done of them."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_api.errors import PortsError
from agent_api.ports.directory import PortDirectory
from agent_api.ports.disk import DiskPace
from agent_api.ports.table import PortTable
from tests.support.agent import until
from tests.support.kept_ports import container_port, container_ports
from tests.support.machines import SAMPLE_VM, SAMPLE_VMI


class Clock:
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def passing(self, seconds: float, *, then: OSError | None = None) -> Callable[[], None]:
        """A change that takes so long, and fails or not."""

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


def kept(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "vm").rglob("*") if path.is_file()]


async def test_what_is_plugged_at_once_is_kept_and_freed_at_once(ports: PortTable, tmp_path: Path) -> None:
    assert ports.plug_at_once([container_port(vm_id="c1")])
    assert (list(ports.of_machine(SAMPLE_VM)), kept(tmp_path)) == ([SAMPLE_VMI], [SAMPLE_VMI])
    assert ports.unplug_at_once(SAMPLE_VM, vmi_uuid=None, container="another")
    assert list(ports.of_machine(SAMPLE_VM)) == [SAMPLE_VMI]
    assert ports.unplug_at_once(SAMPLE_VM, vmi_uuid=SAMPLE_VMI, container="c1")
    assert (len(ports), kept(tmp_path)) == (0, [])


async def test_nothing_is_done_at_once_before_the_ports_are_reloaded(tmp_path: Path) -> None:
    ports = PortTable(PortDirectory(str(tmp_path)))
    assert not ports.plug_at_once([container_port()])
    assert len(ports) == 0


async def test_nothing_is_done_at_once_while_a_change_is_under_way(ports: PortTable) -> None:
    async with ports._changes._one_at_a_time:
        other = asyncio.create_task(ports.plug([container_port(vm_id="first")]))
        await until(lambda: ports._changes._under_way)
        assert not ports.plug_at_once([container_port(vm_id="second")])
    await other
    assert [port.vm_id for port in container_ports(ports)] == ["first"]


async def test_a_disk_that_refuses_is_an_error_and_nothing_is_plugged(ports: PortTable, tmp_path: Path) -> None:
    port = container_port()
    (tmp_path / "vm" / port.vm_name).write_text("no folder")
    with pytest.raises(PortsError, match="File exists"):
        ports.plug_at_once([port])
    assert len(ports) == 0


async def test_nothing_is_done_at_once_on_a_slow_disk(ports: PortTable) -> None:
    clock = Clock()
    ports._disk = DiskPace(clock)
    ports._disk.time(clock.passing(0.1))
    assert not ports.plug_at_once([container_port()])
    clock.seconds += 60
    assert ports.plug_at_once([container_port()])


class TestADisk:
    """Is trusted again a minute after it was slow."""

    def test_is_quick_until_a_change_took_long(self) -> None:
        clock = Clock()
        pace = DiskPace(clock)
        pace.time(clock.passing(0.019))
        assert pace.is_quick
        pace.time(clock.passing(0.021))
        assert not pace.is_quick

    def test_that_fails_slowly_is_slow(self) -> None:
        clock = Clock()
        pace = DiskPace(clock)
        with pytest.raises(OSError, match="broken"):
            pace.time(clock.passing(1, then=OSError("broken")))
        assert not pace.is_quick

    def test_is_trusted_after_a_minute(self) -> None:
        clock = Clock()
        pace = DiskPace(clock)
        pace.time(clock.passing(1))
        clock.seconds += 59.9
        assert not pace.is_quick
        clock.seconds += 0.1
        assert pace.is_quick
