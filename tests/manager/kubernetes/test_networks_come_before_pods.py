"""Networks are told before the pods that were there with them, at start and after each new list (rule 3)."""

import asyncio
from functools import partial

from tests.manager.kubernetes.conftest import Follow
from tests.support.cluster_objects import NADS, ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.following import eventually
from tests.support.told_source import ToldSource


async def test_at_start_namespaces_and_nads_are_told_first(follow: Follow, objects: ClusterObjects) -> None:
    told = await follow()
    await told.until_listed()
    objects.add_pod("web-0", networks="net-a")
    objects.add_nad("net-a")
    again = await follow()
    await again.until_listed()
    assert set(again.lines()[:2]) == {"+namespace blue", "+nad net-a"}
    assert again.lines()[2:] == ["+pod web-0", "listed"]


async def test_a_pod_that_is_listed_anew_comes_after_a_nad_that_was_made_with_it(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    told = await follow()
    await told.until_listed()
    await eventually(lambda: len(server.watches) == 3)
    server.faults.silent = True
    objects.add_nad("net-a")
    objects.add_pod("web-0", networks="net-a")
    server.faults.silent = False
    server.forget_history()
    await told.until(lambda: "+pod web-0" in told.lines())
    assert told.lines().index("+nad net-a") < told.lines().index("+pod web-0")


async def test_networks_are_listed_anew_though_only_the_watch_of_pods_was_lost(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    told = await follow()
    await told.until_listed()
    await eventually(lambda: len(server.watches) == 3)
    before = [objects.requests(f"list {kind}") for kind in (NADS.plural, "namespaces", "pods")]
    server.forget_history()
    await eventually(lambda: objects.requests("list pods") > before[2])
    after = [objects.requests(f"list {kind}") for kind in (NADS.plural, "namespaces")]
    assert after[0] > before[0]
    assert after[1] > before[1]


async def test_no_pod_is_told_while_networks_were_never_listed(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    objects.add_pod("web-0")
    server.faults.refuse(403, verb="get", times=1000)  # of the definition
    told = await follow(wait_timeout=0.05)
    await eventually(lambda: server.faults.refused >= 3)
    assert "+pod web-0" not in told.lines()
    assert told.lists == []
    assert told.source.problems()
    server.faults.refusals.clear()
    await told.until_listed()
    assert "+pod web-0" in told.lines()
    assert told.source.problems() == []


async def test_pods_go_on_in_the_end_where_known_networks_cannot_be_listed_again(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    told = await follow(wait_timeout=0.05)
    await told.until_listed()
    await eventually(lambda: len(server.watches) == 3)
    server.faults.refuse(403, verb="get", times=1000)  # of the definition, before NADs are listed
    server.forget_history()
    objects.add_pod("web-0")
    await told.until(lambda: "+pod web-0" in told.lines())
    assert told.lines()[-1] == "+pod web-0"
    server.faults.refusals.clear()
    await told.until(lambda: told.lines()[-1] == "listed")


async def test_however_often_networks_are_listed_they_are_followed_once(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    told = await follow()
    await told.until_listed()
    for number in range(5):
        await eventually(lambda: len(server.watches) == 3)
        server.forget_history()
        objects.add_pod(f"web-{number}")
        await told.until(partial(_ends_with, told, f"+pod web-{number}", "listed"))
    await eventually(lambda: len(server.watches) == 3)
    objects.add_nad("net-a")
    await told.until(lambda: "+nad net-a" in told.lines())
    objects.add_pod("last")
    await told.until(lambda: "+pod last" in told.lines())
    assert told.lines().count("+nad net-a") == 1


async def test_a_busy_manager_keeps_pods_at_the_server_but_not_networks(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    for number in range(700):
        objects.add_pod(f"web-{number}")
    told = await follow()
    async with asyncio.timeout(10):
        await told.until_listed()
    assert told.source.backlog == 0
    assert [line for line in told.lines() if "pod" in line] == sorted(
        (f"+pod web-{number}" for number in range(700)), key=str
    )
    assert server.requests.count("list pods") == 2


def _ends_with(told: ToldSource, *lines: str) -> bool:
    return told.lines()[-len(lines) :] == list(lines)
