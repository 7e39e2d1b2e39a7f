"""Fast path: requests in our plugin's form get the handlers' responses; all other requests go to the handlers."""

import asyncio
import json
import operator
import uuid
from collections.abc import Callable
from functools import partial

import pytest
from aiohttp import web

from cni_contrail.agent.client import AgentClient as PluginClient
from cni_contrail.agent.connections import idle_connections
from cni_contrail.agent.http import Endpoint, HttpExchange
from cni_contrail.deadline import Deadline
from contrail_config.embedded.store import SqliteStore
from contrail_service import connections
from tests.agent_api.conftest import StartAgent, WaitForSync
from tests.support.raw_http import RawResponse, connected, exchanged
from tests.support.served_agent import ServedAgent, port_of, until
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, make_virtual_machine

VIRTUAL_MACHINE = make_virtual_machine("p1")
CONTAINER = "c" * 64
PORTS = json.dumps([port_of(SAMPLE_VM, SAMPLE_VMI), port_of(SAMPLE_VM, str(uuid.uuid4()))]).encode()
ONE = json.dumps(port_of(SAMPLE_VM, SAMPLE_VMI)).encode()

FAST = {
    "interfaces": ("GET", f"/vm-cfg/{VIRTUAL_MACHINE.name}?wait=3.000", b""),
    "interfaces by uid": ("GET", f"/vm-cfg/{VIRTUAL_MACHINE.name}?wait=60&uid={VIRTUAL_MACHINE.uuid}", b""),
    "ports": ("POST", "/vm", PORTS),
    "a port": ("POST", "/vm", ONE),
    "the ports of a container": ("DELETE", f"/vm/{SAMPLE_VM}?vm-id={CONTAINER}", b""),
    "an interface": ("DELETE", f"/vm/{SAMPLE_VM}/{SAMPLE_VMI}?vm-id={CONTAINER}", b""),
}
SLOW = {
    "an unknown name": ("GET", "/vm-cfg/nobody?wait=0", b""),
    "another pod's uid": ("GET", f"/vm-cfg/{VIRTUAL_MACHINE.name}?wait=0&uid={SAMPLE_VMI}", b""),
    "no wait": ("GET", f"/vm-cfg/{VIRTUAL_MACHINE.name}", b""),
    "an invalid wait": ("GET", f"/vm-cfg/{VIRTUAL_MACHINE.name}?wait=soon", b""),
    "an empty uid": ("GET", f"/vm-cfg/{VIRTUAL_MACHINE.name}?wait=0&uid=", b""),
    "a quoted name": ("GET", f"/vm-cfg/{VIRTUAL_MACHINE.name.replace('p', '%70')}?wait=0", b""),
    "a path upwards": ("GET", "/vm-cfg/..?wait=0", b""),
    "GET with a body": ("GET", f"/vm-cfg/{VIRTUAL_MACHINE.name}?wait=0", b"{}"),
    "no JSON": ("POST", "/vm", b"nonsense"),
    "no port": ("POST", "/vm", b"[]"),
    "a wrong uuid": ("POST", "/vm", json.dumps(port_of("x", SAMPLE_VMI)).encode()),
    "a duplicate key": ("POST", "/vm", ONE[:-1] + b', "vm-id": "d"}'),
    "no body": ("POST", "/vm", b""),
    "no container": ("DELETE", f"/vm/{SAMPLE_VM}", b""),
    "an empty container": ("DELETE", f"/vm/{SAMPLE_VM}?vm-id=", b""),
    "an invalid vm uuid": ("DELETE", f"/vm/x?vm-id={CONTAINER}", b""),
    "an unknown path": ("GET", "/elsewhere", b""),
    "an unknown method": ("PATCH", "/vm", b"{}"),
}

SHARING = {
    "the desired state": ("GET", "/datapath?wait=0.000", b""),
    "a report": ("POST", "/datapath", b"{}"),
    "readiness": ("GET", "/readyz", b""),
}
"""Requests of the daemon that the fast path leaves to the handlers."""


def plain(method: str, target: str, body: bytes = b"") -> bytes:
    """Returns a request as our plugin sends it."""
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def with_header(data: bytes) -> bytes:
    """Returns the request with an additional header, which keeps it off the fast path."""
    return data.replace(b"\r\n\r\n", b"\r\nX: y\r\n\r\n", 1)


def content(answer: RawResponse) -> tuple[int, list[tuple[str, str]], bytes]:
    """Returns a response without its date."""
    return answer.status, [header for header in answer.headers.items() if header[0] != "date"], answer.body


async def counted_requests(served: ServedAgent) -> set[str]:
    """Returns the names and labels of all counters of requests."""
    async with served.unix.get("/metrics") as answer:
        lines = (await answer.text()).splitlines()
    counters = (line.rpartition(" ")[0] for line in lines if line.startswith("contrail_agent_requests_total{"))
    return {counter for counter in counters if 'route="/metrics"' not in counter}


@pytest.fixture
def seen_by_aiohttp(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All data that reaches aiohttp from now on."""
    seen: list[bytes] = []
    received: Callable[[web.RequestHandler, bytes], None] = web.RequestHandler.data_received

    def receive(handler: web.RequestHandler, data: bytes) -> None:
        seen.append(data)
        received(handler, data)

    monkeypatch.setattr(web.RequestHandler, "data_received", receive)
    return seen


@pytest.fixture
async def listed(served: ServedAgent, store: SqliteStore, wait_for_sync: WaitForSync) -> ServedAgent:
    await store.put_virtual_machine(VIRTUAL_MACHINE)
    await wait_for_sync()
    return served


@pytest.mark.parametrize("call", FAST.values(), ids=FAST.keys())
async def test_the_fast_path_responds_as_the_handlers_do(
    listed: ServedAgent, call: tuple[str, str, bytes], seen_by_aiohttp: list[bytes]
) -> None:
    fast = await exchanged(listed.address, plain(*call))
    assert seen_by_aiohttp == []
    slow = await exchanged(listed.address, with_header(plain(*call)))
    assert seen_by_aiohttp != []
    assert content(fast) == content(slow)
    assert fast.headers.keys() == slow.headers.keys()
    assert fast.status == 200


@pytest.mark.parametrize("call", SLOW.values(), ids=SLOW.keys())
async def test_other_requests_go_to_the_handlers(
    listed: ServedAgent, call: tuple[str, str, bytes], seen_by_aiohttp: list[bytes]
) -> None:
    answer = await exchanged(listed.address, plain(*call))
    assert b"".join(seen_by_aiohttp) == plain(*call)
    assert content(answer) == content(await exchanged(listed.address, with_header(plain(*call))))


async def test_the_fast_path_plugs_and_unplugs(listed: ServedAgent) -> None:
    await exchanged(listed.address, plain(*FAST["ports"]))
    assert len(listed.agent.ports) == 2
    await exchanged(listed.address, plain("DELETE", f"/vm/{SAMPLE_VM}?vm-id=another"))
    assert len(listed.agent.ports) == 2
    await exchanged(listed.address, plain(*FAST["an interface"]))
    assert len(listed.agent.ports) == 1
    await exchanged(listed.address, plain(*FAST["the ports of a container"]))
    assert len(listed.agent.ports) == 0


async def test_the_fast_path_has_the_metrics_of_the_handlers(listed: ServedAgent) -> None:
    for call in FAST.values():
        await exchanged(listed.address, plain(*call))
    counted = await counted_requests(listed)
    for call in FAST.values():
        await exchanged(listed.address, with_header(plain(*call)))
    assert counted
    assert await counted_requests(listed) == counted


async def test_writes_are_rejected_if_tcp_writes_is_off(start_agent: StartAgent) -> None:
    served = await start_agent(tcp_writes=False)
    for name in ("ports", "the ports of a container"):
        assert (await exchanged(served.address, plain(*FAST[name]))).status == 403
    assert len(served.agent.ports) == 0


async def test_a_request_waits_for_interfaces_that_appear_later(served: ServedAgent, store: SqliteStore) -> None:
    call = asyncio.create_task(exchanged(served.address, plain(*FAST["interfaces"])))
    await until(lambda: len(served.agent.virtual_machines.waiters))
    await store.put_virtual_machine(VIRTUAL_MACHINE)
    assert (await call).status == 200


class TestConnection:
    """Requests of both paths on one connection: complete, in pieces and pipelined."""

    async def test_serves_both_paths_alternately(self, listed: ServedAgent) -> None:
        async with connected(listed.address) as connection:
            for call in [*FAST.values(), *FAST.values()]:
                for data in (plain(*call), with_header(plain(*call))):
                    await connection.send(data)
                    assert (await connection.answer()).status == 200

    async def test_pipelined_requests_are_all_answered(self, listed: ServedAgent) -> None:
        async with connected(listed.address) as connection:
            await connection.send(b"".join(plain(*call) for call in FAST.values()) * 3)
            for _ in range(3 * len(FAST)):
                assert (await connection.answer()).status == 200

    @pytest.mark.parametrize("call", FAST.values(), ids=FAST.keys())
    async def test_a_request_in_two_pieces_is_answered_once_it_is_complete(
        self, listed: ServedAgent, call: tuple[str, str, bytes], seen_by_aiohttp: list[bytes]
    ) -> None:
        data = plain(*call)
        cuts = {*range(1, len(data), 7), data.index(b"localhost") + 5, data.index(b"\r\n\r\n"), len(data) - 1}
        for cut in sorted(cuts):
            seen_by_aiohttp.clear()
            first = [data[:cut]]
            async with connected(listed.address) as connection:
                await connection.send(data[:cut])
                await until(partial(operator.eq, seen_by_aiohttp, first))
                await connection.send(data[cut:])
                assert (await connection.answer()).status == 200

    @pytest.mark.parametrize("first", [with_header(plain(*FAST["interfaces"])), plain(*FAST["interfaces"])])
    async def test_the_rest_of_a_pipelined_head_is_not_a_request_of_its_own(
        self, listed: ServedAgent, first: bytes
    ) -> None:
        await exchanged(listed.address, plain(*FAST["a port"]))
        async with connected(listed.address) as connection:
            await connection.send(first + b"GET /elsewhere HTTP/1.1\r\nX: ")
            assert (await connection.answer()).status == 200
            await connection.send(plain(*FAST["an interface"]))  # for HTTP the value of the header and further headers
            assert (await connection.answer()).status == 404
            await connection.send(plain(*FAST["interfaces"]))
            assert (await connection.answer()).status == 200
        assert len(listed.agent.ports) == 1

    async def test_the_rest_of_a_head_that_began_during_a_wait_is_not_a_request_of_its_own(
        self, listed: ServedAgent
    ) -> None:
        waiters = listed.agent.virtual_machines.waiters
        await exchanged(listed.address, plain(*FAST["a port"]))
        async with connected(listed.address) as connection:
            await connection.send(plain("GET", "/vm-cfg/nobody?wait=0.2"))
            await until(lambda: len(waiters) == 1)
            await connection.send(b"GET /elsewhere HTTP/1.1\r\nX: ")
            assert (await connection.answer()).status == 404
            await connection.send(plain(*FAST["an interface"]))
            assert (await connection.answer()).status == 404
        assert len(listed.agent.ports) == 1

    async def test_returns_to_the_fast_path_after_a_whole_request_that_went_to_the_handlers(
        self, listed: ServedAgent, seen_by_aiohttp: list[bytes]
    ) -> None:
        missing = plain("GET", "/vm-cfg/nobody?wait=0")
        async with connected(listed.address) as connection:
            await connection.send(missing)
            assert (await connection.answer()).status == 404
            await connection.send(plain(*FAST["interfaces"]))
            assert (await connection.answer()).status == 200
        assert seen_by_aiohttp == [missing]

    @pytest.mark.parametrize("call", SHARING.values(), ids=SHARING.keys())
    async def test_returns_to_the_fast_path_after_requests_of_the_daemon_on_the_same_connection(
        self, listed: ServedAgent, call: tuple[str, str, bytes], seen_by_aiohttp: list[bytes]
    ) -> None:
        async with connected(listed.address) as connection:
            await connection.send(plain(*call))
            await connection.answer()
            await connection.send(plain(*FAST["interfaces"]))
            assert (await connection.answer()).status == 200
        assert seen_by_aiohttp == [plain(*call)]

    async def test_idle_after_a_response_is_closed(
        self, monkeypatch: pytest.MonkeyPatch, start_agent: StartAgent
    ) -> None:
        monkeypatch.setattr(connections, "IDLE_TIMEOUT", 0.2)
        served = await start_agent(limits={"head_timeout": 0.1})
        loop = asyncio.get_running_loop()
        async with connected(served.address) as connection:
            for _ in range(3):  # in total longer than the idle timeout and much longer than the head timeout
                await connection.send(plain(*FAST["a port"]))
                assert (await connection.answer()).status == 200
                answered = loop.time()
                await asyncio.sleep(0.12)
            assert await connection.is_closed()
            assert 0.15 < loop.time() - answered < 5

    async def test_an_incomplete_head_after_a_response_times_out(self, start_agent: StartAgent) -> None:
        served = await start_agent(limits={"head_timeout": 0.1})
        async with connected(served.address) as connection:
            await connection.send(plain(*FAST["a port"]))
            assert (await connection.answer()).status == 200
            await connection.send(b"GET /vm-cfg/")
            assert (await connection.answer()).status == 408


async def test_our_plugin_uses_the_fast_path(listed: ServedAgent, seen_by_aiohttp: list[bytes]) -> None:
    deadline = Deadline(10)

    def attach_and_detach() -> None:
        agent = PluginClient(Endpoint(str(listed.socket), "", 0))
        call: HttpExchange = agent.request_vm_config(VIRTUAL_MACHINE.name, VIRTUAL_MACHINE.uuid, 3.0, deadline)
        assert agent.read_vm_config(call).interfaces is not None
        agent.confirm_plug(agent.request_plug([port_of(SAMPLE_VM, SAMPLE_VMI)], deadline))
        agent.unplug(SAMPLE_VM, "", CONTAINER, deadline)
        agent.unplug(SAMPLE_VM, SAMPLE_VMI, CONTAINER, deadline)
        idle_connections.close()

    await asyncio.to_thread(attach_and_detach)
    assert seen_by_aiohttp == []
