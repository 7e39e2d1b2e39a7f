"""`GET /vm-cfg/<vm-name>?wait=<seconds>`: held until the pod's list is there, then answered at once."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from agent_api.handlers import vm_cfg
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.agent_api.conftest import StartAgent
from tests.support.agent import ServedAgent, until
from tests.support.machines import SAMPLE_VMI, make_machine

Answer = tuple[int, object]
Ask = Callable[..., Awaitable["asyncio.Task[Answer]"]]


async def asked(served: ServedAgent, name: str, **parameters: str) -> Answer:
    async with served.unix.get(f"/vm-cfg/{name}", params=parameters) as answer:
        return answer.status, await answer.json()


async def waiting_requests(served: ServedAgent, number: int) -> None:
    """Returns when so many requests wait."""
    await until(lambda: len(served.agent.virtual_machines.waiters) == number)


@pytest.fixture
async def ask(served: ServedAgent) -> AsyncIterator[Ask]:
    """Asks for a name with `wait`, and returns the task of the answer once the request waits."""
    tasks: list[asyncio.Task[Answer]] = []

    async def ask(name: str, **parameters: str) -> asyncio.Task[Answer]:
        before = len(served.agent.virtual_machines.waiters)
        tasks.append(asyncio.create_task(asked(served, name, wait="30", **parameters)))
        await waiting_requests(served, before + 1)
        return tasks[-1]

    yield ask
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def names_of(answer: Answer) -> list[str]:
    status, items = answer
    assert status == 200
    assert isinstance(items, list)
    return [item["vm-uuid"] for item in items]


async def test_the_list_is_answered_as_soon_as_it_is_written(store: SqliteStore, ask: Ask) -> None:
    machine = make_machine()
    answer = await ask(machine.name)
    await store.put_virtual_machine(machine)
    assert names_of(await answer) == [machine.uuid]


async def test_a_list_that_is_there_is_not_waited_for(store: SqliteStore, served: ServedAgent, ask: Ask) -> None:
    machine = make_machine()
    await store.put_virtual_machine(machine)
    await asked(served, machine.name, wait="5")
    began = time.monotonic()
    assert names_of(await asked(served, machine.name, wait="30")) == [machine.uuid]
    assert time.monotonic() - began < 5


async def test_everybody_who_waits_for_the_name_is_answered_and_nobody_else(
    store: SqliteStore, served: ServedAgent, ask: Ask
) -> None:
    machine = make_machine("wanted")
    answers = [await ask(machine.name) for _ in range(3)]
    other = await ask("k8s__default__other")
    await store.put_virtual_machine(machine)
    assert [names_of(await answer) for answer in answers] == [[machine.uuid]] * 3
    await waiting_requests(served, 1)
    assert not other.done()


async def test_a_machine_that_comes_without_interfaces_is_waited_for_on(
    store: SqliteStore, served: ServedAgent, ask: Ask
) -> None:
    machine = make_machine()
    answer = await ask(machine.name)
    await store.put_virtual_machine(make_machine(uid=machine.uuid, interfaces=()))
    await store.put_virtual_machine(machine)
    assert names_of(await answer) == [machine.uuid]


@pytest.mark.parametrize("seconds", ["0", "0.05", "00.05"])
async def test_when_the_time_is_over_it_is_upstreams_404(served: ServedAgent, seconds: str) -> None:
    assert await asked(served, "k8s__default__nobody", wait=seconds) == (404, {"error": "{ Not Found }"})


async def test_a_longer_wait_than_the_longest_is_cut(served: ServedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vm_cfg, "MAX_WAIT", 0.05)
    assert (await asked(served, "k8s__default__nobody", wait="999999999"))[0] == 404


@pytest.mark.parametrize("seconds", ["", "-1", "nan", "inf", "1e9", "soon", "1,5", " 5", "٣", "9" * 400, "5\n"])
async def test_a_wait_that_is_no_number_of_seconds_is_an_error_that_names_it(served: ServedAgent, seconds: str) -> None:
    status, content = await asked(served, "k8s__default__p1", wait=seconds)
    assert status == 400
    assert content == {"error": f"wait: {seconds[:80]!r} is not a number of seconds"}


async def test_a_client_that_hangs_up_is_forgotten_at_once(served: ServedAgent, ask: Ask) -> None:
    answer = await ask("k8s__default__p1")
    answer.cancel()
    await waiting_requests(served, 0)


async def test_many_wait_while_others_are_answered(store: SqliteStore, start_agent: StartAgent) -> None:
    served = await start_agent()
    machines = [make_machine(f"p{number}") for number in range(300)]
    answers = [asyncio.create_task(asked(served, machine.name, wait="30")) for machine in machines]
    await waiting_requests(served, 100)  # as many connections as the client opens
    for machine in machines:
        await store.put_virtual_machine(machine)
    assert [names_of(await answer) for answer in answers] == [[machine.uuid] for machine in machines]
    assert len(served.agent.virtual_machines.waiters) == 0


async def test_an_agent_that_stops_tells_those_who_wait(start_agent: StartAgent) -> None:
    served = await start_agent()
    answer = asyncio.create_task(asked(served, "k8s__default__p1", wait="30"))
    await waiting_requests(served, 1)
    served.agent.virtual_machines.waiters.stop()
    assert await answer == (503, {"error": "agent: stopping"})
    assert (await asked(served, "k8s__default__p1", wait="30"))[0] == 503


class TestUid:
    """`?uid=`: only this pod's list, by uid or by the config hash of a static pod."""

    async def test_its_own_list_is_answered(self, store: SqliteStore, served: ServedAgent) -> None:
        machine = make_machine()
        await store.put_virtual_machine(machine)
        assert names_of(await asked(served, machine.name, wait="5", uid=machine.uuid)) == [machine.uuid]
        assert names_of(await asked(served, machine.name, uid=machine.uuid.upper())) == [machine.uuid]

    async def test_a_static_pods_list_is_answered_for_its_config_hash(
        self, store: SqliteStore, served: ServedAgent
    ) -> None:
        machine = make_machine(config_hash="3d8b9c1f5e0a4b7788990a1b2c3d4e5f")
        await store.put_virtual_machine(machine)
        assert machine.config_hash is not None
        assert names_of(await asked(served, machine.name, wait="5", uid=machine.config_hash)) == [machine.uuid]

    async def test_another_pods_list_is_as_if_it_were_not_there(self, store: SqliteStore, served: ServedAgent) -> None:
        machine = make_machine()
        await store.put_virtual_machine(machine)
        await asked(served, machine.name, wait="5")
        for uid in (SAMPLE_VMI, "0", machine.name):
            assert (await asked(served, machine.name, uid=uid, wait="0.05"))[0] == 404

    async def test_an_empty_uid_is_an_error(self, served: ServedAgent) -> None:
        status, content = await asked(served, "k8s__default__p1", uid="")
        assert (status, content) == (400, {"error": "uid: must not be empty; omit it or set a value"})

    async def test_who_waits_for_a_recreated_pod_never_gets_its_predecessors_list(
        self, store: SqliteStore, served: ServedAgent, ask: Ask
    ) -> None:
        old, new = make_machine(), make_machine()
        await store.put_virtual_machine(old)
        await asked(served, old.name, wait="5")
        answer = await ask(new.name, uid=new.uuid)
        await store.put_virtual_machine(old)  # it changes once more, which wakes who waits for the name
        await store.delete_virtual_machine(old.uuid)
        await store.put_virtual_machine(new)
        assert names_of(await answer) == [new.uuid]

    async def test_a_pod_recreated_many_times_is_served_to_each_who_waits_for_his_own(
        self, store: SqliteStore, ask: Ask
    ) -> None:
        generations: list[VirtualMachine] = [make_machine() for _ in range(5)]
        answers = [await ask(machine.name, uid=machine.uuid) for machine in generations]
        for machine, answer in zip(generations, answers, strict=True):
            await store.put_virtual_machine(machine)
            assert names_of(await answer) == [machine.uuid]
            await store.delete_virtual_machine(machine.uuid)
