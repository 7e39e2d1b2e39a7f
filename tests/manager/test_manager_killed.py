"""kill -9 amid two hundred pods: written virtual machines are complete, the others follow, and nothing leaks."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from contrail_config.embedded.store import SqliteStore
from manager.source import Pod
from tests.support.manager_process import POD_COUNT, objects
from tests.support.running_manager import DEADLINE, running_manager

ADDRESSES = 4  # of a pod: one of its networks has two families


async def killed_after(path: Path, written: int) -> None:
    """Runs a manager in a process of its own, and kills it once so many virtual machines are written."""
    command = (sys.executable, "-m", "tests.support.manager_process", os.fspath(path))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE):
            for _ in range(written):
                assert await process.stdout.readline()
    finally:
        process.send_signal(signal.SIGKILL)
        await process.communicate()


@pytest.mark.parametrize("written", [1, 60, 150])
async def test_the_next_manager_assigns_all_pods_and_no_address_twice(tmp_path: Path, written: int) -> None:
    path = tmp_path / "config.db"
    await killed_after(path, written)
    store = await SqliteStore.open(path)
    before = {vm.uuid: vm for vm in await store.virtual_machines()}
    assert len(before) >= written
    async with running_manager(store) as running:
        await running.send_list(*objects())
        after = {vm.uuid: vm for vm in await store.virtual_machines()}
        pods = [each for each in objects() if isinstance(each, Pod)]
        assert after.keys() == {pod.uid for pod in pods}
        assert before.items() <= after.items()
        assert await running.allocated_count() == 3 * POD_COUNT
        addresses = [
            (interface.network_uuid, address.address)
            for vm in after.values()
            for interface in vm.interfaces
            for address in interface.addresses
        ]
        assert len(set(addresses)) == len(addresses) == ADDRESSES * POD_COUNT
        await running.remove(*pods)
        assert await running.allocated_count() == 0
    await store.close()
