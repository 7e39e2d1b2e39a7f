"""`/v1/watch` of a running manager over real sockets: state, changes, continuation, bounds and the end of a stream."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import generate_latest

from contrail_service.connections import BoundedRunner
from contrail_service.listen import ListenAddress
from contrail_service.pages import errors_as_json
from contrail_service.serving import serve_tcp, set_up
from manager.api import change_publisher
from manager.api.change_log import MAX_WATCHES
from manager.api.queries import ItemFilter, ManagerQueries
from manager.api.routes import api_routes
from manager.api.types import DEFAULT_KINDS, WatchedKind
from manager.api.watch import Watches, WatchRequest
from tests.support.pods import make_nad, make_pod
from tests.support.recorded_reflector import eventually
from tests.support.running_manager import RunningManager
from tests.support.watch_client import DEADLINE, Message, WatchClient, watching

Address = tuple[str, int]
Serve = Callable[..., Awaitable[Address]]

NAD, OTHER = make_nad("net-a"), make_nad("net-b", namespace="red", cidr="10.2.0.0/16")
WEB, WAITS = make_pod("web", networks="net-a"), make_pod("waits", networks="late")
MEBIBYTE = 1 << 20


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serves routes as the processes do, and returns their address."""
    async with contextlib.AsyncExitStack() as stack:

        async def serve_routes(routes: list[web.RouteDef], *, head_timeout: float = 10.0) -> Address:
            application = web.Application(middlewares=[errors_as_json])
            application.add_routes(routes)
            runner = BoundedRunner(application, shutdown_timeout=2.0, head_timeout=head_timeout)
            await set_up(stack, runner)
            listen = await serve_tcp(runner, ListenAddress("127.0.0.1", 0))
            return (listen.host, listen.port)

        yield serve_routes


@pytest.fixture
async def address(running: RunningManager, serve: Serve) -> Address:
    await running.send_list(NAD, OTHER, WEB, WAITS)
    return await serve(api_routes(running.manager.queries, running.manager.change_log))


def pod_of(message: Message) -> tuple[str, str, str, str | None, int]:
    """Type, name, state, reason and number of interfaces."""
    pod = message["object"]
    return (
        message["type"],
        pod["name"],
        pod["state"],
        pod.get("reason"),
        len(pod.get("machine", {}).get("interfaces", ())),
    )


async def pods_until(client: WatchClient, state: str) -> list[tuple[str, str, str, str | None, int]]:
    found = [pod_of(await client.message())]
    while found[-1][2] != state:
        found.append(pod_of(await client.message()))
    return found


async def listed(address: Address, kind: str) -> list[Any]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{address[0]}:{address[1]}/v1/{kind}") as answer:
        found: list[Any] = (await answer.json())["items"]
        return found


async def test_a_watch_begins_with_the_state_that_the_lists_have(address: Address) -> None:
    async with watching(address) as client:
        state = await client.state()
    assert client.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert client.headers["cache-control"] == "no-store"
    for kind in DEFAULT_KINDS:
        assert [each["object"] for each in state if each["kind"] == kind] == await listed(address, kind)
    assert [each["kind"] for each in state] == [*(3 * ["networks"]), *(2 * ["pods"]), *(4 * ["events"])]


async def test_changes_of_pods_follow_with_state_reason_and_interfaces(
    address: Address, running: RunningManager
) -> None:
    async with watching(address, "?kind=pods") as client:
        assert [pod_of(each) for each in await client.state()] == [
            ("APPLIED", "waits", "Waiting", "NetworkNotFound", 0),
            ("APPLIED", "web", "Ready", None, 2),
        ]
        await running.apply(make_nad("late", cidr="10.3.0.0/16"))
        assert (await pods_until(client, "Ready"))[-1] == ("APPLIED", "waits", "Ready", None, 2)
        await running.remove(WEB)
        assert pod_of(await client.message())[:2] == ("DELETED", "web")
        await running.apply(make_pod("new", networks="net-a@left/x"))
        assert (await pods_until(client, "Refused"))[-1][:3] == ("APPLIED", "new", "Refused")


async def test_changes_of_networks_follow_with_the_number_of_their_interfaces(
    address: Address, running: RunningManager
) -> None:
    async with watching(address, "?kind=networks&namespace=blue") as client:
        assert [each["object"]["interfaces"] for each in await client.state()] == [1]
        await running.apply(make_pod("second", networks="net-a"))
        assert (await client.message())["object"]["interfaces"] == 2
        await running.remove(WEB)
        assert (await client.message())["object"]["interfaces"] == 1
        await running.apply(make_nad("more", cidr="10.4.0.0/16"))
        added = await client.message()
        assert (added["type"], added["object"]["network"]["nad"]) == ("APPLIED", "blue/more")
        await running.remove(make_nad("more", cidr="10.4.0.0/16"))
        deleted = await client.message()
        assert (deleted["type"], deleted["object"]["network"]["nad"]) == ("DELETED", "blue/more")


async def test_events_follow_with_their_count(address: Address, running: RunningManager) -> None:
    async with watching(address, "?kind=events&namespace=blue&name=again") as client:
        assert await client.state() == []
        for count in (1, 2):
            await running.apply(make_pod("again", networks="late"))
            event = (await client.message())["object"]
            assert (event["reason"], event["count"]) == ("NetworkNotFound", count)
            await running.remove(make_pod("again", networks="late"))
    assert event in await listed(address, "events")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?kind=pods,networks&namespace=red", {"net-b", "red-pod"}),
        ("?kind=pods&name=red-pod", {"red-pod"}),
        ("?kind=pods&namespace=blue", {"waits", "web", "last"}),
        ("?kind=networks&namespace=blue&name=net-b", set()),
    ],
)
async def test_state_and_changes_are_filtered_as_the_lists(
    address: Address, running: RunningManager, query: str, names: set[str]
) -> None:
    async with watching(address, query) as client:
        state = await client.state()
        await running.apply(make_pod("red-pod", namespace="red"), make_pod("last"))
        running.manager.change_log.close()
        # What was not sent yet at the end is not sent any more: the state of another watch has it.
        changes = [each for each in await client.rest() if each["type"] != "CLOSED"]
    found = {
        (each["object"]["network"]["nad"].partition("/")[2] if each["kind"] == "networks" else each["object"]["name"])
        for each in [*state, *changes]
    }
    assert found <= names
    assert names - found <= {"red-pod", "last"}


async def test_what_a_watch_was_sent_equals_the_lists_after_many_changes(
    address: Address, running: RunningManager
) -> None:
    known: dict[tuple[str, ...], Any] = {}

    async def follow(client: WatchClient) -> None:
        while (message := await client.message())["type"] != "CLOSED":
            if message["type"] in ("APPLIED", "DELETED"):
                key = key_of(message)
                known.pop(key, None)
                if message["type"] == "APPLIED":
                    known[key] = message["object"]

    async with watching(address, f"?kind={','.join(WatchedKind)}") as client:
        following = asyncio.create_task(follow(client))
        nads = [make_nad(f"net-{number}", cidr=f"10.{100 + number}.0.0/24") for number in range(5)]
        pods = [make_pod(f"pod-{number}", networks=f"net-{number % 5},net-a") for number in range(40)]
        await running.apply(*pods[:20], *nads[:3])
        await running.apply(*nads[3:], *pods[20:])
        await running.remove(*pods[5:15], nads[1], WAITS)
        await running.apply(*pods[5:8], make_pod("pod-9", generation=2, networks="net-0"))
        await running.idle()
        expected = {
            key_of({"kind": kind, "object": item}): item for kind in WatchedKind for item in await listed(address, kind)
        }
        await eventually(lambda: known == expected)
        following.cancel()


def key_of(message: Message) -> tuple[str, ...]:
    item = message["object"]
    if message["kind"] == "networks":
        return ("networks", item["network"]["uuid"])
    if message["kind"] in ("pods", "pod-networks"):
        return (message["kind"], item["namespace"], item["name"])
    if message["kind"] == "nodes":
        return ("nodes", item["name"])
    return ("events", *(item[key] for key in ("kind", "namespace", "name", "uid", "type", "reason", "message")))


class TestContinuation:
    async def test_only_the_changes_since_the_last_id_are_sent(self, address: Address, running: RunningManager) -> None:
        async with watching(address, "?kind=pods") as client:
            await client.state()
        await eventually(lambda: len(running.manager.change_log) == 0)
        await running.remove(WEB)
        async with watching(address, "?kind=pods", last_id=client.last_id) as client:
            assert pod_of(await client.message())[:2] == ("DELETED", "web")
            last_id = client.last_id
        async with watching(address, "?kind=pods", last_id=last_id) as client:
            await running.remove(WAITS)
            assert pod_of(await client.message())[:2] == ("DELETED", "waits")

    @pytest.mark.parametrize("last_id", ["unknown", "0123456789ab-1"])
    async def test_an_id_of_another_manager_gets_the_whole_state(self, address: Address, last_id: str) -> None:
        async with watching(address, "?kind=pods", last_id=last_id) as client:
            assert len(await client.state()) == 2

    async def test_an_id_whose_changes_are_dropped_gets_the_whole_state(
        self, address: Address, running: RunningManager
    ) -> None:
        async with watching(address, "?kind=pods") as client:
            await client.state()
        fill(running, 20 * MEBIBYTE)
        async with watching(address, "?kind=pods", last_id=client.last_id) as client:
            assert len(await client.state()) == 2

    async def test_a_watch_of_few_changes_gets_a_late_id_with_each_heartbeat(
        self, running: RunningManager, serve: Serve
    ) -> None:
        address = await serve([watch_route(running, heartbeat=0.05)])
        async with watching(address, "?kind=pods&name=never") as client:
            await client.state()
            before = client.last_id
            await running.send_list(NAD, WEB)
            while client.last_id == before:
                assert await client.event() == {}


def fill(running: RunningManager, size: int, *, each: int = 10_000) -> None:
    """Publishes as many bytes of changes, each of an object of its own."""
    message = b'{"type":"APPLIED","kind":"%s"}' % (each * b"x")
    for _ in range(size // each):
        running.manager.change_log.publish(object(), WatchedKind.PODS, namespace="blue", name="big", message=message)


def watch_route(running: RunningManager, **options: float) -> web.RouteDef:
    watches = Watches(running.manager.queries, running.manager.change_log, **options)

    async def handle(request: web.Request) -> web.StreamResponse:
        item_filter = ItemFilter(name=request.query.get("name"))
        return await watches.serve(request, WatchRequest((WatchedKind.PODS,), item_filter, ""))

    return web.get("/v1/watch", handle)


class TestBounds:
    async def test_a_slow_client_is_closed_with_the_reason_and_delays_nothing(
        self, running: RunningManager, serve: Serve
    ) -> None:
        await running.send_list(NAD, WEB)
        routes = api_routes(running.manager.queries, running.manager.change_log)
        address = await serve(routes, head_timeout=DEADLINE)  # on a loaded machine the test takes its time
        async with watching(address, "?kind=pods", receive_buffer=4096) as client:
            await client.state()
            for _ in range(60):  # more than all buffers and the log hold, while the client reads nothing
                fill(running, MEBIBYTE, each=1000)
                await asyncio.sleep(0)
            await running.apply(make_pod("prompt", networks="net-a"))
            assert (await running.vm(make_pod("prompt", networks="net-a"))).pod == "prompt"
            last = (await client.rest())[-1]
        assert last["type"] == "CLOSED"
        assert "reads too slowly" in last["message"]

    async def test_a_client_that_never_reads_is_disconnected(self, running: RunningManager, serve: Serve) -> None:
        await running.send_list(NAD, WEB)
        address = await serve(api_routes(running.manager.queries, running.manager.change_log), head_timeout=0.5)
        async with watching(address, "?kind=pods", receive_buffer=4096):
            async with asyncio.timeout(DEADLINE):
                while len(running.manager.change_log):
                    fill(running, MEBIBYTE)
                    await asyncio.sleep(0.01)

    async def test_too_many_watches_are_rejected(self, address: Address, running: RunningManager) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(MAX_WATCHES):
                await stack.enter_async_context(watching(address, "?kind=networks"))
            async with watching(address) as client:
                assert client.status == 503
                assert await client.error() == f"too many watches: limit is {MAX_WATCHES}; retry later"
            assert len(await listed(address, "pods")) == 2
            assert f"contrail_manager_watches {MAX_WATCHES}.0" in generate_latest(running.registry).decode()
        await eventually(lambda: len(running.manager.change_log) == 0)
        async with watching(address) as client:
            assert client.status == 200

    async def test_a_client_that_disconnects_frees_its_place_at_once(
        self, address: Address, running: RunningManager
    ) -> None:
        async with watching(address) as client:
            await client.state()
            assert len(running.manager.change_log) == 1
        await eventually(lambda: len(running.manager.change_log) == 0)

    async def test_a_stream_ends_after_its_time(self, running: RunningManager, serve: Serve) -> None:
        address = await serve([watch_route(running, max_seconds=0.1)])
        async with watching(address, "?kind=pods") as client:
            assert (await client.rest())[-1] == {
                "type": "CLOSED",
                "message": "a stream ends after 0.1 s: continue with its last id",
            }

    async def test_the_end_of_the_manager_ends_all_watches(self, address: Address, running: RunningManager) -> None:
        async with watching(address) as first, watching(address, "?kind=events") as second:
            for client in (first, second):
                await client.state()
            running.manager.change_log.close()
            for client in (first, second):
                assert await client.rest() == [{"type": "CLOSED", "message": "the manager is stopping"}]
        async with watching(address) as client:
            assert (client.status, await client.error()) == (503, "the manager is stopping")


class TestCost:
    async def test_nothing_is_recorded_unless_somebody_watches(
        self, address: Address, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("encoded", "count_interfaces"):
            monkeypatch.delattr(change_publisher, name)
        monkeypatch.delattr(ManagerQueries, "pod_view")
        await running.apply(make_pod("more", networks="net-a"), make_nad("net-c", cidr="10.5.0.0/16"))
        await running.remove(WEB)
        assert running.manager.change_log.position == 0

    async def test_a_change_reads_neither_the_store_nor_all_pods(
        self, address: Address, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with watching(address) as client:
            await client.state()
            monkeypatch.delattr(change_publisher, "count_interfaces")
            for method in ("networks", "events", "virtual_machines"):
                monkeypatch.setattr(running.store, method, None)
            await running.apply(make_pod("more", networks="net-a"))
            found = [await client.message() for _ in range(4)]
            while {each["kind"] for each in found} != set(DEFAULT_KINDS):
                found.append(await client.message())


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?kind=interfaces", "kind: use a list of networks, pods, events"),
        ("?kind=", "kind: use a list of networks, pods, events"),
        ("?kind=pods,", "kind: use a list of networks, pods, events"),
        ("?limit=5", "unknown query key 'limit': use kind, namespace, name"),
        ("?kind=pods&kind=pods", "duplicate query key 'kind'"),
    ],
)
async def test_an_invalid_request_is_rejected(address: Address, query: str, message: str) -> None:
    async with watching(address, query) as client:
        assert client.status == 400
        assert (await client.error()).startswith(message)


async def test_a_manager_that_cannot_serve_says_why(running: RunningManager, serve: Serve) -> None:
    routes = api_routes(running.manager.queries, running.manager.change_log, unavailable=lambda: "the leader is other")
    async with watching(await serve(routes)) as client:
        assert (client.status, await client.error()) == (503, "the leader is other")
