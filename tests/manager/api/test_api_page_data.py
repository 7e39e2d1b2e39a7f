"""What the web page needs beyond pods and networks: networks of pods, addresses, nodes, capacities, default routes."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from contrail_config.errors import StoreError
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.objects import Subnet, VirtualNetwork
from contrail_config.store import AddressPage
from contrail_service.connections import BoundedRunner
from contrail_service.listen import ListenAddress
from contrail_service.pages import errors_as_json
from contrail_service.serving import serve_tcp, set_up
from manager.api.paging import PageRequest, read_token
from manager.api.queries import ItemFilter
from manager.api.routes import api_routes
from manager.api.types import AddressState, AddressView, PodNetworks, PodState
from manager.api.views import MAX_CAPACITY, network_view
from tests.support.pods import make_nad, make_pod
from tests.support.running_manager import RunningManager
from tests.support.watch_client import watching

NAD = make_nad("net-a", cidr="10.1.0.0/29")
WEB, WAITS = make_pod("web", networks="net-a,net-a"), make_pod("waits", networks="late")
REPORT = NodeReport("2026-01-01T00:00:00Z", "agent-1", versions={"agent": "1"})


@pytest.fixture
async def address(running: RunningManager) -> AsyncIterator[tuple[str, int]]:
    await running.send_list(NAD, WEB, WAITS)
    async with contextlib.AsyncExitStack() as stack:
        application = web.Application(middlewares=[errors_as_json])
        application.add_routes(api_routes(running.manager.queries, running.manager.change_log))
        runner = BoundedRunner(application, shutdown_timeout=2.0)
        await set_up(stack, runner)
        listen = await serve_tcp(runner, ListenAddress("127.0.0.1", 0))
        yield listen.host, listen.port


async def items(address: tuple[str, int], path: str) -> list[dict[str, Any]]:
    url = f"http://{address[0]}:{address[1]}/v1/{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        found: list[dict[str, Any]] = (await response.json())["items"]
        return found


async def test_pods_have_the_networks_of_their_interfaces_in_order(
    address: tuple[str, int], running: RunningManager
) -> None:
    vm = await running.vm(WEB)
    expected = tuple(interface.network_uuid for interface in vm.interfaces)
    assert len(expected) == 3
    waiting, ready = msgspec.convert(await items(address, "pod-networks"), list[PodNetworks])
    assert (ready.name, ready.node, ready.state, ready.networks) == ("web", "node-1", PodState.READY, expected)
    assert (waiting.state, waiting.reason, waiting.networks) == (PodState.WAITING, "NetworkNotFound", ())
    assert waiting.message == "network attachment definition blue/late not found"


async def test_changes_of_the_networks_of_pods_follow_as_the_list_has_them(
    address: tuple[str, int], running: RunningManager
) -> None:
    async with watching(address, "?kind=pod-networks") as client:
        state = [each["object"] for each in await client.state()]
        assert state == await items(address, "pod-networks")
        await running.apply(make_nad("late", cidr="10.3.0.0/16"))
        message = await client.message()
        while message["object"]["state"] != "Ready":
            message = await client.message()
        assert message["object"] in await items(address, "pod-networks")
        assert len(message["object"]["networks"]) == 2
        await running.remove(WEB)
        gone = await client.message()
        assert (gone["type"], gone["kind"], gone["object"]["name"]) == ("DELETED", "pod-networks", "web")


async def test_addresses_are_used_by_pods_or_held_after_them(running: RunningManager) -> None:
    await running.send_list(NAD, WEB)
    network = await running.network("k8s-net-a-pod-network")
    assert network is not None
    used = (await running.manager.queries.addresses(ItemFilter(namespace="blue", name="net-a"))).items
    assert used == tuple(
        AddressView(network.uuid, address, AddressState.USED, "blue", "web") for address in ("10.1.0.2", "10.1.0.3")
    )
    await running.remove(WEB)
    held = (await running.manager.queries.addresses(ItemFilter(namespace="blue", name="net-a"))).items
    assert [(each.address, each.state, each.pod) for each in held] == [
        ("10.1.0.2", AddressState.HELD, None),
        ("10.1.0.3", AddressState.HELD, None),
    ]
    assert all(each.until is not None for each in held)


async def test_each_address_is_in_one_page(running: RunningManager) -> None:
    nads = [make_nad("many", cidr="10.1.0.0/24,fd00::/64"), make_nad("other", cidr="10.2.0.0/24")]
    pods = [make_pod(f"p{number}", networks="many,other") for number in range(12)]
    await running.send_list(*nads, *pods)
    queries = running.manager.queries
    everything = (await queries.addresses(ItemFilter())).items
    assert len(everything) == 12 * 4  # one of the pod network, two of `many`, one of `other`
    ipv4 = {each.address for each in everything if each.address.startswith("10.1.")}
    assert ipv4 == {f"10.1.0.{number}" for number in range(2, 14)}
    found: list[AddressView] = []
    page = await queries.addresses(ItemFilter(), PageRequest(limit=5))
    found += page.items
    while page.next_page is not None:
        page = await queries.addresses(ItemFilter(), PageRequest(limit=5, after=read_token(page.next_page)))
        assert 0 < len(page.items) <= 5
        found += page.items
    assert found == list(everything)


async def test_a_page_of_addresses_reads_no_more_than_it_has(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    await running.send_list(NAD, *(make_pod(f"p{number}", networks="net-a") for number in range(5)))
    read: list[tuple[int, str | None]] = []
    address_page = running.store.address_page

    async def counted(uuid: str, *, limit: int, after: str | None = None) -> AddressPage:
        read.append((limit, after))
        return await address_page(uuid, limit=limit, after=after)

    monkeypatch.setattr(running.store, "address_page", counted)
    queries, of_nad = running.manager.queries, ItemFilter(name="net-a")
    first = await queries.addresses(of_nad, PageRequest(limit=3))
    assert first.next_page is not None
    second = await queries.addresses(of_nad, PageRequest(limit=3, after=read_token(first.next_page)))
    assert read == [(3, None), (3, first.items[2].address)]
    assert (len(first.items), len(second.items), second.next_page) == (3, 2, None)


async def test_a_token_that_names_no_address_is_an_error(running: RunningManager) -> None:
    await running.send_list(NAD)
    with pytest.raises(StoreError, match="not a token of this list"):
        await running.manager.queries.addresses(ItemFilter(), PageRequest(after=("0", "x")))


async def test_nodes_are_those_that_reported_with_their_latest_report(
    address: tuple[str, int], running: RunningManager
) -> None:
    nodes = running.manager.nodes
    nodes.reported("node-2", REPORT)
    nodes.reported("node-1", REPORT)
    assert [each["name"] for each in await items(address, "nodes")] == ["node-1", "node-2"]
    assert [each["report"]["instance"] for each in await items(address, "nodes?name=node-2")] == ["agent-1"]
    assert await items(address, "nodes?namespace=blue") == []
    async with watching(address, "?kind=nodes") as client:
        assert [each["object"] for each in await client.state()] == await items(address, "nodes")
        nodes.reported("node-1", REPORT)  # delivered again, unchanged
        newer = msgspec.structs.replace(REPORT, conflicts=("another agent",))
        nodes.reported("node-1", newer)
        changed = await client.message()
        assert (changed["type"], changed["object"]["report"]["conflicts"]) == ("APPLIED", ["another agent"])
        nodes.removed("node-2")
        nodes.removed("node-2")
        gone = await client.message()
        assert (gone["type"], gone["object"]["name"]) == ("DELETED", "node-2")
    assert [each["name"] for each in await items(address, "nodes")] == ["node-1"]


async def test_pods_have_their_default_routes(address: tuple[str, int]) -> None:
    _, web_pod = await items(address, "pods")
    assert web_pod["defaultRoutes"] == [{"family": 4, "index": 0, "gateway": "10.32.0.1"}]


def test_the_capacity_of_a_network_is_by_family_and_bounded() -> None:
    subnets = (Subnet("10.1.0.0/29", "10.1.0.1"), Subnet("fd00::/64", None))
    view = network_view(VirtualNetwork(("d", "p", "n"), "u", subnets), 1)
    assert (view.ipv4_capacity, view.ipv6_capacity) == (5, MAX_CAPACITY)
    assert network_view(VirtualNetwork(("d", "p", "n"), "u", subnets[:1]), 1).ipv6_capacity == 0


async def test_the_watch_of_everything_has_no_kind_twice(address: tuple[str, int]) -> None:
    """Networks of pods are in the pods too: they are sent to those who ask for them."""
    async with watching(address) as client:
        assert {each["kind"] for each in await client.state()} == {"networks", "pods", "events"}


async def test_the_state_of_a_watch_has_all_pods_but_those_that_go_before_their_part(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manager.api.queries.MAX_LIMIT", 2)
    pods = [make_pod(name) for name in ("d", "b", "a", "c", "e")]
    await running.send_list(*pods)
    parts = running.manager.queries.all_pod_networks(ItemFilter(namespace="blue"))
    assert [each.name for each in next(parts)] == ["a", "b"]
    await running.remove(pods[3])
    assert [each.name for each in next(parts)] == ["d"]
    assert [each.name for each in next(parts)] == ["e"]
    assert list(parts) == []
    assert next(running.manager.queries.all_pod_networks(ItemFilter(namespace="blue", name="e")))[0].name == "e"
