"""`GET /vm-cfg/<vm-name>?wait=<seconds>` waits until the pod's interfaces are configured."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from agent_api.handlers import waiting
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.agent_api.conftest import StartAgent, WaitForSync
from tests.support.raw_http import connected, exchanged, request
from tests.support.served_agent import ServedAgent, until
from tests.support.virtual_machines import SAMPLE_VMI, make_pending, make_virtual_machine

Answer = tuple[int, object]
Ask = Callable[..., Awaitable["asyncio.Task[Answer]"]]


async def get_vm_cfg(served: ServedAgent, name: str, **parameters: str) -> Answer:
    async with served.unix.get(f"/vm-cfg/{name}", params=parameters) as answer:
        return answer.status, await answer.json()


async def waiting_requests(served: ServedAgent, number: int) -> None:
    """Waits until this number of requests wait."""
    await until(lambda: len(served.agent.virtual_machines.waiters) == number)


@pytest.fixture
async def ask(served: ServedAgent) -> AsyncIterator[Ask]:
    """Starts a request with `wait`, and returns its task once the request waits."""
    tasks: list[asyncio.Task[Answer]] = []

    async def ask(name: str, **parameters: str) -> asyncio.Task[Answer]:
        before = len(served.agent.virtual_machines.waiters)
        tasks.append(asyncio.create_task(get_vm_cfg(served, name, wait="30", **parameters)))
        await waiting_requests(served, before + 1)
        return tasks[-1]

    yield ask
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def vm_uuids(answer: Answer) -> list[str]:
    status, items = answer
    assert status == 200
    assert isinstance(items, list)
    return [item["vm-uuid"] for item in items]


async def test_a_waiting_request_is_answered_as_soon_as_the_interfaces_are_written(
    store: SqliteStore, ask: Ask
) -> None:
    virtual_machine = make_virtual_machine()
    answer = await ask(virtual_machine.name)
    await store.put_virtual_machine(virtual_machine)
    assert vm_uuids(await answer) == [virtual_machine.uuid]


async def test_known_interfaces_are_answered_without_waiting(store: SqliteStore, served: ServedAgent, ask: Ask) -> None:
    virtual_machine = make_virtual_machine()
    await store.put_virtual_machine(virtual_machine)
    await get_vm_cfg(served, virtual_machine.name, wait="5")
    began = time.monotonic()
    assert vm_uuids(await get_vm_cfg(served, virtual_machine.name, wait="30")) == [virtual_machine.uuid]
    assert time.monotonic() - began < 5


async def test_all_requests_for_the_name_are_answered_and_no_others(
    store: SqliteStore, served: ServedAgent, ask: Ask
) -> None:
    virtual_machine = make_virtual_machine("wanted")
    answers = [await ask(virtual_machine.name) for _ in range(3)]
    other = await ask("k8s__default__other")
    await store.put_virtual_machine(virtual_machine)
    assert [vm_uuids(await answer) for answer in answers] == [[virtual_machine.uuid]] * 3
    await waiting_requests(served, 1)
    assert not other.done()


async def test_a_virtual_machine_without_interfaces_does_not_end_the_wait(
    store: SqliteStore, served: ServedAgent, ask: Ask
) -> None:
    virtual_machine = make_virtual_machine()
    answer = await ask(virtual_machine.name)
    await store.put_virtual_machine(make_virtual_machine(uid=virtual_machine.uuid, interfaces=()))
    await store.put_virtual_machine(virtual_machine)
    assert vm_uuids(await answer) == [virtual_machine.uuid]


@pytest.mark.parametrize("seconds", ["0", "0.05", "00.05"])
async def test_a_time_out_is_the_vrouter_agents_404(served: ServedAgent, seconds: str) -> None:
    assert await get_vm_cfg(served, "k8s__default__nobody", wait=seconds) == (404, {"error": "{ Not Found }"})


@pytest.mark.parametrize("parameters", [{}, {"wait": "0.05"}])
async def test_the_404_says_what_the_pod_waits_for(
    store: SqliteStore, served: ServedAgent, wait_for_sync: WaitForSync, parameters: dict[str, str]
) -> None:
    pending = make_pending()
    await store.put_pending(pending)
    await wait_for_sync()
    expected = {
        "error": "{ Not Found }",
        "reason": "NetworkNotFound",
        "message": "network attachment definition default/blue not found",
    }
    for uid in ({}, {"uid": pending.uuid}):
        assert await get_vm_cfg(served, pending.name, **parameters, **uid) == (404, expected)
    successor = await get_vm_cfg(served, pending.name, **parameters, uid="00000000-0000-4000-8000-000000000001")
    assert successor == (404, {"error": "{ Not Found }"})


async def test_a_reason_does_not_end_the_wait(store: SqliteStore, served: ServedAgent, ask: Ask) -> None:
    pending = make_pending()
    answer = await ask(pending.name, uid=pending.uuid)
    await store.put_pending(pending)
    await until(lambda: served.agent.virtual_machines.pending_reason(pending.name))
    assert len(served.agent.virtual_machines.waiters) == 1
    await store.put_virtual_machine(make_virtual_machine(uid=pending.uuid))
    assert vm_uuids(await answer) == [pending.uuid]


async def test_a_wait_is_limited_to_the_maximum(served: ServedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MAX_WAIT", 0.05)
    assert (await get_vm_cfg(served, "k8s__default__nobody", wait="999999999"))[0] == 404


@pytest.mark.parametrize("seconds", ["", "-1", "nan", "inf", "1e9", "soon", "1,5", " 5", "٣", "9" * 400, "5\n"])
async def test_an_invalid_wait_is_rejected_with_its_value(served: ServedAgent, seconds: str) -> None:
    status, content = await get_vm_cfg(served, "k8s__default__p1", wait=seconds)
    assert status == 400
    assert content == {"error": f"wait: {seconds[:80]!r} is not a number of seconds"}


async def test_a_disconnected_client_waits_no_longer(served: ServedAgent, ask: Ask) -> None:
    answer = await ask("k8s__default__p1")
    answer.cancel()
    await waiting_requests(served, 0)


async def test_many_requests_wait_while_others_are_answered(store: SqliteStore, start_agent: StartAgent) -> None:
    served = await start_agent()
    virtual_machines = [make_virtual_machine(f"p{number}") for number in range(300)]
    answers = [
        asyncio.create_task(get_vm_cfg(served, virtual_machine.name, wait="30")) for virtual_machine in virtual_machines
    ]
    await waiting_requests(served, 100)  # the client opens at most 100 connections
    for virtual_machine in virtual_machines:
        await store.put_virtual_machine(virtual_machine)
    assert [vm_uuids(await answer) for answer in answers] == [
        [virtual_machine.uuid] for virtual_machine in virtual_machines
    ]
    assert len(served.agent.virtual_machines.waiters) == 0


async def test_waiting_requests_over_tcp_leave_the_unix_socket_its_own(
    store: SqliteStore, start_agent: StartAgent
) -> None:
    served = await start_agent(max_waiting=3)
    virtual_machine = make_virtual_machine()
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            connection = await stack.enter_async_context(connected(served.address))
            await connection.send(request("GET", "/vm-cfg/k8s__default__nobody?wait=30"))
        await waiting_requests(served, 3)
        rejected = await exchanged(served.address, request("GET", "/vm-cfg/k8s__default__nobody?wait=30"))
        assert (rejected.status, rejected.error) == (503, "too many waiting requests: limit is 3; retry later")
        answer = asyncio.create_task(get_vm_cfg(served, virtual_machine.name, wait="30"))
        await waiting_requests(served, 4)
        await store.put_virtual_machine(virtual_machine)
        assert vm_uuids(await answer) == [virtual_machine.uuid]


async def test_a_stopping_agent_answers_waiting_requests_with_503(start_agent: StartAgent) -> None:
    served = await start_agent()
    answer = asyncio.create_task(get_vm_cfg(served, "k8s__default__p1", wait="30"))
    await waiting_requests(served, 1)
    served.agent.virtual_machines.waiters.stop()
    assert await answer == (503, {"error": "agent: stopping"})
    assert (await get_vm_cfg(served, "k8s__default__p1", wait="30"))[0] == 503


class TestUid:
    """`?uid=`: only this pod's interfaces, by uid or by the config hash of a static pod."""

    async def test_the_pods_own_interfaces_are_answered(self, store: SqliteStore, served: ServedAgent) -> None:
        virtual_machine = make_virtual_machine()
        await store.put_virtual_machine(virtual_machine)
        assert vm_uuids(await get_vm_cfg(served, virtual_machine.name, wait="5", uid=virtual_machine.uuid)) == [
            virtual_machine.uuid
        ]
        assert vm_uuids(await get_vm_cfg(served, virtual_machine.name, uid=virtual_machine.uuid.upper())) == [
            virtual_machine.uuid
        ]

    async def test_a_static_pod_is_found_by_its_config_hash(self, store: SqliteStore, served: ServedAgent) -> None:
        virtual_machine = make_virtual_machine(config_hash="3d8b9c1f5e0a4b7788990a1b2c3d4e5f")
        await store.put_virtual_machine(virtual_machine)
        assert virtual_machine.config_hash is not None
        assert vm_uuids(await get_vm_cfg(served, virtual_machine.name, wait="5", uid=virtual_machine.config_hash)) == [
            virtual_machine.uuid
        ]

    async def test_another_pods_interfaces_are_not_found(self, store: SqliteStore, served: ServedAgent) -> None:
        virtual_machine = make_virtual_machine()
        await store.put_virtual_machine(virtual_machine)
        await get_vm_cfg(served, virtual_machine.name, wait="5")
        for uid in (SAMPLE_VMI, "0", virtual_machine.name):
            assert (await get_vm_cfg(served, virtual_machine.name, uid=uid, wait="0.05"))[0] == 404

    async def test_an_empty_uid_is_rejected(self, served: ServedAgent) -> None:
        status, content = await get_vm_cfg(served, "k8s__default__p1", uid="")
        assert (status, content) == (400, {"error": "uid: must not be empty; omit it or set a value"})

    async def test_a_request_for_a_recreated_pod_never_gets_its_predecessors_interfaces(
        self, store: SqliteStore, served: ServedAgent, ask: Ask
    ) -> None:
        old, new = make_virtual_machine(), make_virtual_machine()
        await store.put_virtual_machine(old)
        await get_vm_cfg(served, old.name, wait="5")
        answer = await ask(new.name, uid=new.uuid)
        await store.put_virtual_machine(old)  # a change, which wakes requests for the name
        await store.delete_virtual_machine(old.uuid)
        await store.put_virtual_machine(new)
        assert vm_uuids(await answer) == [new.uuid]

    async def test_each_generation_of_a_recreated_pod_is_served_to_its_own_request(
        self, store: SqliteStore, ask: Ask
    ) -> None:
        generations: list[VirtualMachine] = [make_virtual_machine() for _ in range(5)]
        answers = [await ask(virtual_machine.name, uid=virtual_machine.uuid) for virtual_machine in generations]
        for virtual_machine, answer in zip(generations, answers, strict=True):
            await store.put_virtual_machine(virtual_machine)
            assert vm_uuids(await answer) == [virtual_machine.uuid]
            await store.delete_virtual_machine(virtual_machine.uuid)
