"""Networks are sent before the pods that existed with them, at start and after each relist (rule 3)."""

import asyncio
from functools import partial

from tests.manager.kubernetes.conftest import Follow
from tests.support.cluster_objects import NADS, ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.recorded_source import RecordedSource


async def test_namespaces_and_nads_are_sent_first_at_start(follow: Follow, objects: ClusterObjects) -> None:
    recorded = await follow()
    await recorded.until_listed()
    objects.add_pod("web-0", networks="net-a")
    objects.add_nad("net-a")
    again = await follow()
    await again.until_listed()
    assert set(again.lines()[:2]) == {"+namespace blue", "+nad net-a"}
    assert again.lines()[2:] == ["+pod web-0", "listed"]


async def test_a_relisted_pod_is_sent_after_a_nad_created_with_it(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    recorded = await follow()
    await recorded.until_listed()
    await eventually(lambda: len(server.watches) == 3)
    server.faults.silent = True
    objects.add_nad("net-a")
    objects.add_pod("web-0", networks="net-a")
    server.faults.silent = False
    server.forget_history()
    await recorded.until(lambda: "+pod web-0" in recorded.lines())
    assert recorded.lines().index("+nad net-a") < recorded.lines().index("+pod web-0")


async def test_networks_are_relisted_also_if_only_the_watch_of_pods_was_lost(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    recorded = await follow()
    await recorded.until_listed()
    await eventually(lambda: len(server.watches) == 3)
    before = [objects.requests(f"list {kind}") for kind in (NADS.plural, "namespaces", "pods")]
    server.forget_history()
    await eventually(lambda: objects.requests("list pods") > before[2])
    after = [objects.requests(f"list {kind}") for kind in (NADS.plural, "namespaces")]
    assert after[0] > before[0]
    assert after[1] > before[1]


async def test_no_pod_is_sent_before_the_first_list_of_networks(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    objects.add_pod("web-0")
    server.faults.reject(403, verb="get", times=1000)  # of the CRD
    recorded = await follow(wait_timeout=0.05)
    await eventually(lambda: server.faults.rejected >= 3)
    assert "+pod web-0" not in recorded.lines()
    assert recorded.lists == []
    assert recorded.source.problems()
    server.faults.rejections.clear()
    await recorded.until_listed()
    assert "+pod web-0" in recorded.lines()
    assert recorded.source.problems() == []


async def test_pods_proceed_after_a_timeout_if_networks_cannot_be_relisted(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    recorded = await follow(wait_timeout=0.05)
    await recorded.until_listed()
    await eventually(lambda: len(server.watches) == 3)
    server.faults.reject(403, verb="get", times=1000)  # of the CRD, before NADs are listed
    server.forget_history()
    objects.add_pod("web-0")
    await recorded.until(lambda: "+pod web-0" in recorded.lines())
    assert recorded.lines()[-1] == "+pod web-0"
    server.faults.rejections.clear()
    await recorded.until(lambda: recorded.lines()[-1] == "listed")


async def test_repeated_lists_of_networks_do_not_duplicate_watches(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    recorded = await follow()
    await recorded.until_listed()
    for number in range(5):
        await eventually(lambda: len(server.watches) == 3)
        server.forget_history()
        objects.add_pod(f"web-{number}")
        await recorded.until(partial(_ends_with, recorded, f"+pod web-{number}", "listed"))
    await eventually(lambda: len(server.watches) == 3)
    objects.add_nad("net-a")
    await recorded.until(lambda: "+nad net-a" in recorded.lines())
    objects.add_pod("last")
    await recorded.until(lambda: "+pod last" in recorded.lines())
    assert recorded.lines().count("+nad net-a") == 1


async def test_a_slow_reader_slows_pods_but_not_networks(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    for number in range(700):
        objects.add_pod(f"web-{number}")
    recorded = await follow()
    async with asyncio.timeout(10):
        await recorded.until_listed()
    assert recorded.source.backlog == 0
    assert [line for line in recorded.lines() if "pod" in line] == sorted(
        (f"+pod web-{number}" for number in range(700)), key=str
    )
    assert server.requests.count("list pods") == 2


def _ends_with(recorded: RecordedSource, *lines: str) -> bool:
    return recorded.lines()[-len(lines) :] == list(lines)
