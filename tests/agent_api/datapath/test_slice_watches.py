"""Watches of network slices: only of networks on this node, complete after a list, restarted after a failure."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agent_api.datapath import slice_watches
from agent_api.datapath.slice_index import SliceIndex
from agent_api.datapath.slice_watches import SliceWatches
from contrail_config.objects import NetworkSlice
from tests.support.served_agent import until
from tests.support.slices import SlicesInMemory

BLUE, RED, GREEN = "net-blue-0", "net-red-0", "net-green-1"  # the last character is the group


def make_slice(network: str, node: str) -> NetworkSlice:
    return NetworkSlice(network, node, ("d", "p", "n"), 7, tunnel=("192.0.2.1",))


class Node:
    """The networks on a node, and the slices that it knows."""

    def __init__(self, store: SlicesInMemory) -> None:
        self.networks: set[str] = set()
        self.changes = 0
        self.index = SliceIndex()
        self.forgotten: list[str] = []
        self.watches = SliceWatches(
            store,
            self.index,
            networks=lambda: self.networks,
            on_change=self._changed,
            on_forget=self.forgotten.append,
        )

    def follow(self, *networks: str) -> None:
        self.networks = set(networks)
        self.watches.changed()

    def known(self) -> set[tuple[str, str]]:
        return {(item.network_uuid, item.node) for item in self.index.all()}

    def _changed(self) -> None:
        self.changes += 1


@pytest.fixture
def store() -> SlicesInMemory:
    store = SlicesInMemory()
    for network in (BLUE, RED, GREEN):
        store.put(make_slice(network, "a"))
    return store


@asynccontextmanager
async def running(node: Node) -> AsyncIterator[None]:
    task = asyncio.create_task(node.watches.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture
async def node(store: SlicesInMemory) -> AsyncIterator[Node]:
    node = Node(store)
    async with running(node):
        yield node


@pytest.fixture
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_watches, "FIRST_PAUSE", 0.01)


async def test_networks_are_watched_only_while_they_are_on_the_node(node: Node, store: SlicesInMemory) -> None:
    assert store.watched == []
    node.follow(BLUE, GREEN)
    await until(lambda: node.index.is_complete(BLUE) and node.index.is_complete(GREEN))
    assert node.known() == {(BLUE, "a"), (GREEN, "a")}
    assert set(store.watched) == {frozenset({BLUE}), frozenset({GREEN})}
    node.follow(GREEN)
    await until(lambda: node.known() == {(GREEN, "a")})
    assert store.watched == [frozenset({GREEN})]
    assert not node.index.is_complete(BLUE)
    assert node.forgotten == [BLUE]


async def test_networks_of_one_group_share_a_watch_and_stay_known_when_it_is_restarted(
    node: Node, store: SlicesInMemory
) -> None:
    node.follow(BLUE)
    await until(lambda: node.index.is_complete(BLUE))
    store.is_hung = True
    node.follow(BLUE, RED)
    await until(lambda: store.watched == [frozenset({BLUE, RED})])
    assert node.index.is_complete(BLUE)
    assert (BLUE, "a") in node.known()
    assert not node.index.is_complete(RED)
    assert node.forgotten == []
    store.end_lists()
    await until(lambda: node.index.is_complete(RED))


async def test_changes_are_applied(node: Node, store: SlicesInMemory) -> None:
    node.follow(BLUE)
    await until(lambda: node.index.is_complete(BLUE))
    before = node.changes
    store.put(make_slice(BLUE, "b"))
    await until(lambda: (BLUE, "b") in node.known())
    assert node.changes > before
    store.remove(make_slice(BLUE, "a"))
    await until(lambda: node.known() == {(BLUE, "b")})


@pytest.mark.usefixtures("_short_pauses")
async def test_a_watch_that_ends_is_restarted_and_corrects_what_changed_meanwhile(
    node: Node, store: SlicesInMemory
) -> None:
    node.follow(BLUE)
    await until(lambda: node.index.is_complete(BLUE))
    store.is_broken = True
    store.cut()
    await until(lambda: bool(node.watches.problems))
    store.remove(make_slice(BLUE, "a"))
    store.put(make_slice(BLUE, "b"))
    assert node.known() == {(BLUE, "a")}
    assert node.index.is_complete(BLUE)
    await until(lambda: node.watches.problems == ["network slices: watch failed: broken on purpose"])
    store.is_broken = False
    await until(lambda: node.known() == {(BLUE, "b")})
    await until(lambda: node.watches.problems == [])


async def test_a_network_is_incomplete_until_its_list_ends(store: SlicesInMemory) -> None:
    store.is_hung = True
    node = Node(store)
    node.networks = {BLUE}
    async with running(node):
        await until(lambda: (BLUE, "a") in node.known())
        assert not node.index.is_complete(BLUE)
        store.end_lists()
        await until(lambda: node.index.is_complete(BLUE))
