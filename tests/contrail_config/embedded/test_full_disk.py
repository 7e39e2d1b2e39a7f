"""A full disk: an operation is written completely or not at all, and the store notices when there is space again."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contrail_config.embedded.store import SqliteStore
from contrail_config.errors import StoreFullError
from contrail_config.objects import VirtualMachine, VirtualNetwork
from tests.support.recorded_reflector import eventually
from tests.support.virtual_networks import allocate_one, make_network, start_pod

DISK = 1024 * 1024


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(path)], check=True)
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
async def store(disk: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(disk / "config.db")
    yield store
    await store.close()


def fill(disk: Path, *, free_pages: int = 0) -> Path:
    """Leaves only so many pages free; returns the file to delete."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            file.truncate(file.tell() - free_pages * 4096)
    return filler


async def start_pods_until_it_is_full(store: SqliteStore, network: VirtualNetwork) -> list[VirtualMachine]:
    """Returns the pods whose virtual machines were acknowledged."""
    started = []
    for number in range(200):
        try:
            started.append(await start_pod(store, [network], f"more-{number}"))
        except StoreFullError:
            return started
    raise AssertionError("the disk is not full")


@pytest.mark.parametrize("free_pages", range(6))
async def test_an_operation_is_written_completely_or_not_at_all(
    disk: Path, store: SqliteStore, free_pages: int
) -> None:
    network = await store.put_network(make_network())
    acknowledged = [await start_pod(store, [network], f"p{number}") for number in range(10)]
    filler = fill(disk, free_pages=free_pages)
    acknowledged += await start_pods_until_it_is_full(store, network)
    written = await store.virtual_machines()
    owners = await store.address_owners()
    assert {vm.uuid for vm in acknowledged} == {vm.uuid for vm in written}
    assert owners >= {vm.interfaces[0].uuid for vm in written}
    filler.unlink()
    await eventually(lambda: store.problems() == [])
    await store.close()
    again = await SqliteStore.open(disk / "config.db")
    assert (await again.virtual_machines(), await again.address_owners()) == (written, owners)
    await allocate_one(again, network)
    await again.close()


async def test_reads_work_and_the_problem_ends_by_itself(disk: Path, store: SqliteStore) -> None:
    network = await store.put_network(make_network())
    filler = fill(disk)
    await start_pods_until_it_is_full(store, network)
    assert store.problems() == [f"{disk}/config.db: the disk is full"]
    assert await store.networks() == [network]
    filler.unlink()
    await eventually(lambda: store.problems() == [])


async def test_a_store_is_not_opened_on_a_full_disk(disk: Path) -> None:
    filler = fill(disk)
    with pytest.raises(StoreFullError, match=r"config\.db: the disk is full"):
        await SqliteStore.open(disk / "config.db")
    filler.unlink()
    store = await SqliteStore.open(disk / "config.db")
    assert await store.networks() == []
    await store.close()
