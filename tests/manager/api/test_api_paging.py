"""Pages of the API: complete and in order while objects come and go, and small however many pods there are."""

import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from pytest_aiohttp.plugin import AiohttpClient

from contrail_config.objects import VirtualMachine
from manager.api.paging import DEFAULT_LIMIT, PageRequest
from manager.api.queries import ItemFilter, ManagerQueries
from manager.api.routes import api_routes
from manager.api.types import PodState
from manager.configuration import MetaPluginSettings
from manager.controller.pod_record import PodRecord
from tests.support.pods import make_nad, make_pod
from tests.support.running_manager import RunningManager

PODS = [make_pod(f"web-{number}", networks="net-a") for number in range(7)]
NADS = [make_nad("net-a"), *(make_nad(f"net-{number}", cidr=f"10.{number}.0.0/24") for number in range(2, 6))]
MEBIBYTE = 1 << 20

GetPage = Callable[[str], Awaitable[tuple[list[Any], str]]]


@pytest.fixture
async def get_page(running: RunningManager, aiohttp_client: AiohttpClient) -> GetPage:
    """Returns the items of a path and the query of the next page, empty after the last."""
    await running.send_list(*NADS, *PODS, make_pod("other", namespace="red"))
    application = web.Application()
    application.add_routes(api_routes(running.manager.queries, running.manager.change_log))
    client: TestClient[web.Request, web.Application] = await aiohttp_client(application)

    async def get(path: str) -> tuple[list[Any], str]:
        response = await client.get(path)
        assert response.status == 200, await response.text()
        body = await response.json()
        return body["items"], f"&continue={body['continue']}" if "continue" in body else ""

    return get


async def all_pages(get_page: GetPage, path: str) -> list[list[Any]]:
    pages, following = [], ""
    while True:
        items, following = await get_page(path + following)
        pages.append(items)
        if not following:
            return pages


async def test_pods_are_in_pages(get_page: GetPage) -> None:
    pages = await all_pages(get_page, "/v1/pods?limit=3")
    assert [[item["name"] for item in page] for page in pages] == [
        ["web-0", "web-1", "web-2"],
        ["web-3", "web-4", "web-5"],
        ["web-6", "other"],
    ]
    assert all(item["machine"]["pod"] == item["name"] for page in pages for item in page)


async def test_a_page_that_is_just_filled_is_the_last(get_page: GetPage) -> None:
    assert [len(page) for page in await all_pages(get_page, "/v1/pods?limit=8")] == [8]


async def test_pages_are_filtered(get_page: GetPage) -> None:
    pages = await all_pages(get_page, "/v1/pods?namespace=blue&limit=4")
    assert [[item["name"] for item in page] for page in pages] == [
        ["web-0", "web-1", "web-2", "web-3"],
        ["web-4", "web-5", "web-6"],
    ]


async def test_no_pod_is_skipped_or_repeated_while_others_come_and_go(
    get_page: GetPage, running: RunningManager
) -> None:
    first, following = await get_page("/v1/pods?namespace=blue&limit=3")
    await running.remove(PODS[0], PODS[2])
    await running.apply(make_pod("a-new"), make_pod("web-40"))
    second, _ = await get_page(f"/v1/pods?namespace=blue&limit=10{following}")
    assert [item["name"] for item in first] == ["web-0", "web-1", "web-2"]
    assert [item["name"] for item in second] == ["web-3", "web-4", "web-40", "web-5", "web-6"]


async def test_pages_of_interfaces_have_whole_pods(get_page: GetPage) -> None:
    pages = await all_pages(get_page, "/v1/interfaces?namespace=blue&limit=5")
    assert [[f"{item['pod']} {item['index']}" for item in page] for page in pages] == [
        ["web-0 0", "web-0 1", "web-1 0", "web-1 1"],
        ["web-2 0", "web-2 1", "web-3 0", "web-3 1"],
        ["web-4 0", "web-4 1", "web-5 0", "web-5 1"],
        ["web-6 0", "web-6 1"],
    ]
    assert [len(page) for page in await all_pages(get_page, "/v1/interfaces?namespace=blue&limit=1")] == [2] * 7


async def test_networks_and_events_are_in_pages(get_page: GetPage) -> None:
    networks = await all_pages(get_page, "/v1/networks?limit=4")
    assert [len(page) for page in networks] == [4, 2]
    assert len({item["network"]["uuid"] for page in networks for item in page}) == 6
    events = await all_pages(get_page, "/v1/events?limit=5")
    assert [len(page) for page in events] == [5, 5, 3]
    assert len({(item["kind"], item["namespace"], item["name"]) for page in events for item in page}) == 13
    seen = [item["lastSeen"] for page in events for item in page]
    assert seen == sorted(seen)


async def test_only_the_virtual_machines_of_the_page_are_read(
    get_page: GetPage, running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, virtual_machine = [], running.store.virtual_machine

    async def count(uuid: str) -> VirtualMachine:
        read.append(uuid)
        return await virtual_machine(uuid)

    monkeypatch.setattr(running.store, "virtual_machine", count)
    monkeypatch.setattr(running.store, "virtual_machines", None)
    await get_page("/v1/pods?limit=3")
    assert len(read) == 3


async def test_the_summary_counts_without_reading_virtual_machines_and_events(
    get_page: GetPage, running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    await get_page("/v1/pods")
    for method in ("virtual_machine", "virtual_machines", "events"):
        monkeypatch.setattr(running.store, method, None)
    summary = await running.manager.queries.summary()
    assert summary.pods[PodState.READY] == 8
    assert summary.pods[PodState.WAITING] == 0
    assert (summary.networks, summary.interfaces) == (6, 15)


@pytest.mark.machine
async def test_a_page_of_150000_pods_takes_little_memory(running: RunningManager) -> None:
    await running.send_list(NADS[0], PODS[0])
    record = running.manager.pods.records[PODS[0].key]
    records: dict[str, PodRecord] = {f"namespace-{number % 100}/web-{number}": record for number in range(150_000)}
    store = running.store
    queries = ManagerQueries(records, store, store, meta_plugin=MetaPluginSettings(), reports={}, store_kind="embedded")
    tracemalloc.start()
    try:
        page = await queries.pods(ItemFilter(), PageRequest())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(page.items) == DEFAULT_LIMIT
    assert peak < 20 * MEBIBYTE
