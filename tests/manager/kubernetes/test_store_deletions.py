"""StoreDeletions: virtual machines that appear in, or vanish from, the store of the manager."""

import asyncio
from pathlib import Path

import pytest

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from manager.deletions import Removed
from manager.kubernetes.store_deletions import StoreDeletions
from tests.support.virtual_machines import make_virtual_machine


@pytest.fixture
async def appeared() -> list[VirtualMachine]:
    return []


async def test_deletions_are_told_but_not_those_of_pods_that_are_gone(
    tmp_path: Path, appeared: list[VirtualMachine]
) -> None:
    store = await SqliteStore.open(str(tmp_path / "store"))
    there, gone, kept = (make_virtual_machine(pod=name) for name in ("there", "gone", "kept"))
    await store.put_virtual_machine(kept)
    deletions = StoreDeletions(store, is_gone=lambda vm: vm.pod == "gone", on_appeared=appeared.append)
    async with asyncio.timeout(10), deletions.watch() as told:
        await store.put_virtual_machine(there)
        await store.put_virtual_machine(gone)
        await store.delete_virtual_machine(gone.uuid)
        await store.delete_virtual_machine(there.uuid)
        assert await anext(told) == Removed(there.uuid, there)
    assert appeared == [there, gone]
    await store.close()
