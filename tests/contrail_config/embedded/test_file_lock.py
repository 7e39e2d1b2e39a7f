"""An open store is locked against other processes and against a second open in the same process."""

import os
from pathlib import Path

import pytest

from contrail_config.embedded.store import SqliteStore
from contrail_config.errors import StoreUnavailableError
from tests.contrail_config.embedded.heavy_writer import heavy_writer


async def test_a_second_open_in_the_same_process_is_rejected(store: SqliteStore, path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match=rf"{path}.* process {os.getpid()}$"):
        await SqliteStore.open(path)
    assert await store.networks() == []


async def test_the_error_names_the_other_process(path: Path) -> None:
    with heavy_writer(path) as (process, stdout):
        assert [stdout.readline() for _ in range(2)] == ["opening\n", "open\n"]
        with pytest.raises(StoreUnavailableError, match=rf"{path}.* process {process.pid}$"):
            await SqliteStore.open(path)


async def test_a_symbolic_link_to_the_file_is_locked_too(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.symlink_to(path)
    with pytest.raises(StoreUnavailableError, match=f"process {os.getpid()}"):
        await SqliteStore.open(other)


async def test_a_closed_store_can_be_opened_again(store: SqliteStore, path: Path) -> None:
    await store.close()
    await (await SqliteStore.open(path)).close()


async def test_a_rejected_open_leaves_the_lock_with_its_holder(store: SqliteStore, path: Path) -> None:
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match=f"process {os.getpid()}"):
            await SqliteStore.open(path)
    await store.close()
    await (await SqliteStore.open(path)).close()


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_a_rejected_open_leaks_no_descriptor(store: SqliteStore, path: Path) -> None:
    before = open_descriptors()
    for _ in range(3):
        with pytest.raises(StoreUnavailableError):
            await SqliteStore.open(path)
    assert open_descriptors() == before
