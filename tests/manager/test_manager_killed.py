"""kill -9 amid two hundred pods: written virtual machines are complete, the others follow, and nothing leaks."""

import asyncio
import signal
import sys

import pytest

from manager.source import Pod
from tests.support.manager_process import POD_COUNT, objects
from tests.support.running_manager import DEADLINE, running_manager
from tests.support.stores_with_events import StoreWithEvents, open_at

ADDRESSES = 4  # of a pod: one of its networks has two families


async def killed_after(place: str, written: int) -> None:
    """Runs a manager in a process of its own, and kills it once so many virtual machines are written."""
    command = (sys.executable, "-m", "tests.support.manager_process", place)
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
async def test_the_next_manager_assigns_all_pods_and_no_address_twice(place: str, written: int) -> None:
    await killed_after(place, written)
    async with open_at(place) as store:
        await check_after_kill(store, written)


async def check_after_kill(store: StoreWithEvents, written: int) -> None:
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
