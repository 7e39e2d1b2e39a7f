"""Changes of slices and reports wake the requests whose virtual machine they release, and no others."""

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator, Iterator

import pytest

from agent_api.datapath.kind import Datapath
from agent_api.datapath.linux_datapath import Spanning
from agent_api.virtual_machine_index import ServedVirtualMachine, VirtualMachineIndex
from agent_api.waiters import MAX_WAITING_REQUESTS
from contrail_config.embedded.store import SqliteStore
from tests.agent_api.conftest import StartAgent
from tests.agent_api.datapath.test_networks_across_nodes import BLUE, POD, complete, get, make_slice, report, vm_cfg
from tests.support.raw_http import connected, request
from tests.support.served_agent import ServedAgent, until
from tests.support.slices import SlicesInMemory
from tests.support.virtual_machines import NODE, SAMPLE_VMI

_CHANGES = 10


@pytest.fixture
def slices() -> SlicesInMemory:
    slices = SlicesInMemory()
    slices.put(make_slice(BLUE, NODE, "192.0.2.1"))
    return slices


@pytest.fixture
async def linux(store: SqliteStore, start_agent: StartAgent, slices: SlicesInMemory) -> ServedAgent:
    """An agent with a pod that is held back: its networks are known, but the last report does not have them."""
    linux = await start_agent(datapath=Datapath.LINUX, spanning=Spanning(slices, NODE, 4789))
    await report(linux, (await get(linux))["version"])
    await store.put_virtual_machine(POD)
    await complete(linux)
    return linux


@pytest.fixture
def files() -> Iterator[None]:
    """Raises the file limit for both ends of the connections."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 16384), max(before[1], 16384)))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Lookups:
    """Counts the lookups by name: one for each request that wakes."""

    def __init__(self, index: VirtualMachineIndex, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        self._find = index.find
        monkeypatch.setattr(index, "find", self._counted)

    def _counted(self, name: str, *, uid: str | None = None) -> ServedVirtualMachine | None:
        self.number += 1
        return self._find(name, uid=uid)


@contextlib.asynccontextmanager
async def waiting_over_tcp(served: ServedAgent, targets: list[str]) -> AsyncIterator[None]:
    """Holds one waiting request for each path."""
    waiters = served.agent.virtual_machines.waiters
    async with contextlib.AsyncExitStack() as stack:
        for target in targets:
            connection = await stack.enter_async_context(connected(served.address))
            await connection.send(request("GET", target))
        await until(lambda: len(waiters) == len(targets))
        yield


@pytest.mark.usefixtures("files")
async def test_2048_requests_over_tcp_are_not_woken_by_changes_of_slices(
    linux: ServedAgent, slices: SlicesInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = MAX_WAITING_REQUESTS // 2
    unknown = [f"/vm-cfg/k8s__default__none-{number}?wait=60" for number in range(half)]
    held_back = [f"/vm-cfg/{POD.name}?wait=60&uid={uid}" for uid in (POD.uuid, SAMPLE_VMI)]
    async with waiting_over_tcp(linux, [*unknown, *held_back * (half // 2)]):
        lookups = Lookups(linux.agent.virtual_machines, monkeypatch)
        state = await complete(linux)
        for number in range(_CHANGES):
            slices.put(make_slice(BLUE, "other", f"192.0.2.{10 + number}"))
            state = await get(linux, version=state["version"])
        assert lookups.number == 0
        await report(linux, state["version"])
        await until(lambda: len(linux.agent.virtual_machines.waiters) == half + half // 2)
        assert lookups.number == half  # each request for the released name once
        slices.put(make_slice(BLUE, "other", "192.0.2.9"))
        await get(linux, version=state["version"])
        assert lookups.number == half


async def test_changes_of_one_moment_check_once_what_is_held_back(linux: ServedAgent) -> None:
    index, checked = linux.agent.virtual_machines, []
    waiting = asyncio.create_task(vm_cfg(linux, wait="5"))
    await until(lambda: len(index.waiters) == 1)

    def held_back(virtual_machine: object) -> str:
        checked.append(virtual_machine)
        return "not connected yet"

    index.hold_back(held_back)
    for _ in range(_CHANGES):
        index.recheck()
    await until(lambda: len(checked) > 0)
    assert checked == [POD]
    index.hold_back(lambda _virtual_machine: None)
    index.recheck()
    assert (await waiting)[0] == 200
