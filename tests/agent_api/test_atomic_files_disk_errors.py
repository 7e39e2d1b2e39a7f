"""Disk errors: 500 with the reason, and table and files are unchanged."""

import asyncio
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_api.errors import StorageError
from agent_api.ports.container import ContainerPort
from agent_api.ports.directory import PortDirectory
from tests.support.served_agent import ServedAgent, port_of
from tests.support.stored_ports import container_ports
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, SAMPLE_VN

PAGE = 4096  # bytes of a tmpfs that the smallest file needs


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of eight pages that holds the ports directory."""
    path = tmp_path / "ports"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={8 * PAGE}", "tmpfs", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


@pytest.fixture
async def on_small_disk(small_disk: Path, served: ServedAgent) -> ServedAgent:
    return served


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def fill(root: Path) -> Path:
    """Fills the rest of the disk."""
    ballast = root / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        while True:
            try:
                file.write(b"x" * PAGE)
            except OSError:
                return ballast


async def test_a_full_disk_is_500_with_the_reason_and_nothing_is_plugged(
    on_small_disk: ServedAgent, small_disk: Path
) -> None:
    ballast = await asyncio.to_thread(fill, small_disk)
    async with on_small_disk.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI)) as answer:
        assert answer.status == 500
        assert (await answer.json())["error"].endswith(f"{SAMPLE_VMI}: No space left on device")
    assert not on_small_disk.agent.is_plugged(SAMPLE_VM)
    assert [path.name for path in (small_disk / "vm").iterdir()] == []
    ballast.unlink()
    async with on_small_disk.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI)) as answer:
        assert answer.status == 200


async def test_a_disk_that_fills_up_during_an_array_changes_nothing(
    on_small_disk: ServedAgent, small_disk: Path
) -> None:
    await on_small_disk.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI, vm_id="container-1"))
    before = snapshot(small_disk)
    ports = [port_of(SAMPLE_VM, uuid_of, vm_id="container-2") for uuid_of in (SAMPLE_VMI, *map(str, many_uuids()))]
    async with on_small_disk.tcp.post("/vm", json=ports) as answer:
        assert answer.status == 500
    assert snapshot(small_disk) == before
    assert [port.vm_id for port in container_ports(on_small_disk.agent.ports)] == ["container-1"]


async def test_ports_can_be_unplugged_on_a_full_disk(on_small_disk: ServedAgent, small_disk: Path) -> None:
    await on_small_disk.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
    ballast = await asyncio.to_thread(fill, small_disk)
    async with on_small_disk.tcp.delete(f"/vm/{SAMPLE_VM}") as answer:
        assert answer.status == 200
    assert list(snapshot(small_disk)) == [ballast.name]


async def test_ports_that_cannot_be_loaded_prevent_the_start(tmp_path: Path) -> None:
    (tmp_path / "ports").write_text("no folder")
    with pytest.raises(StorageError, match=f"port file {tmp_path}/ports/vm: Not a directory"):
        await asyncio.to_thread(PortDirectory(str(tmp_path / "ports")).load)


class TestDirectoryInPlaceOfAFile:
    """The last step of a change fails: earlier renames are undone."""

    @pytest.fixture
    def directory(self, tmp_path: Path) -> PortDirectory:
        directory = PortDirectory(str(tmp_path))
        directory.load()
        return directory

    def test_replaced_files_are_restored(self, directory: PortDirectory, tmp_path: Path) -> None:
        old, new = make_port(container="container-1"), make_port(container="container-2")
        directory.change(write=[old])
        blocked = make_port(vmi_uuid=SAMPLE_VN)
        os.makedirs(tmp_path / "vm" / blocked.vm_name / SAMPLE_VN / "inside")
        with pytest.raises(StorageError, match="Is a directory"):
            directory.change(write=[new, blocked])
        assert directory.load() == [old]

    def test_new_files_are_removed_and_removed_files_are_restored(
        self, directory: PortDirectory, tmp_path: Path
    ) -> None:
        old = make_port(container="container-1")
        directory.change(write=[old])
        blocked = make_port(vmi_uuid=SAMPLE_VN)
        os.makedirs(tmp_path / "vm" / blocked.vm_name / SAMPLE_VN / "inside")
        with pytest.raises(StorageError, match="Is a directory"):
            directory.change(write=[make_port(vmi_uuid=str(uuid.uuid4())), blocked], remove=[old])
        assert directory.load() == [old]


def make_port(*, vmi_uuid: str = SAMPLE_VMI, container: str = "") -> ContainerPort:
    return ContainerPort(
        vm_uuid=SAMPLE_VM,
        vn_uuid=SAMPLE_VN,
        vmi_uuid=vmi_uuid,
        vm_id=container,
        vm_name="k8s__default__p1",
        host_ifname="tap0",
    )


def many_uuids() -> list[uuid.UUID]:
    return [uuid.uuid4() for _ in range(20)]
