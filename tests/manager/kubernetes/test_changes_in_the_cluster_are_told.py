"""What comes, changes and goes is told once and in order, also what did so while the server was not to be reached."""

from functools import partial

from tests.manager.kubernetes.conftest import Follow
from tests.support.cluster_objects import CIDR_KEY, ClusterObjects
from tests.support.fake_apiserver.kinds import PODS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.following import eventually
from tests.support.told_source import ToldSource


async def test_pods_and_nads_come_change_and_go(follow: Follow, objects: ClusterObjects) -> None:
    told = await follow()
    await told.until_listed()
    begun = len(told.told)
    objects.add_nad("net-a")
    await told.until(lambda: "+nad net-a" in told.lines())
    objects.change_nad("net-a", {"metadata": {"annotations": {CIDR_KEY: "10.2.0.0/16"}}})
    await told.until(lambda: told.nad("net-a").annotations[CIDR_KEY] == "10.2.0.0/16")
    objects.add_pod("web-0")
    await told.until(lambda: "+pod web-0" in told.lines())
    objects.remove_pod("web-0")
    await told.until(lambda: "-pod web-0" in told.lines())
    objects.remove_nad("net-a")
    await told.until(lambda: "-nad net-a" in told.lines())
    assert told.lines(since=begun) == ["+nad net-a", "+nad net-a", "+pod web-0", "-pod web-0", "-nad net-a"]


async def test_a_pod_is_told_as_soon_as_it_is_bound(follow: Follow, objects: ClusterObjects) -> None:
    told = await follow()
    await told.until_listed()
    objects.add_pod("waits", node=None)
    objects.add_pod("bound")
    await told.until(lambda: "+pod bound" in told.lines())
    assert "+pod waits" not in told.lines()
    objects.change_pod("waits", {"spec": {"nodeName": "node-7"}})
    await told.until(lambda: "+pod waits" in told.lines())
    assert told.pod("waits").node == "node-7"


async def test_a_pod_of_the_same_name_is_the_end_of_the_one_before(follow: Follow, objects: ClusterObjects) -> None:
    first = objects.add_pod("web-0")
    told = await follow()
    await told.until_listed()
    begun = len(told.told)
    objects.remove_pod("web-0")
    second = objects.add_pod("web-0")
    await told.until(lambda: told.pod("web-0").uid == second)
    assert told.lines(since=begun) == ["-pod web-0", "+pod web-0"]
    assert first != second


async def test_what_went_while_the_server_was_away_is_told_as_gone(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    told = await follow()
    await told.until_listed()
    objects.add_pod("stays")
    objects.add_pod("goes")
    objects.add_nad("net-a")
    await told.until(lambda: {"+pod goes", "+nad net-a"} <= set(told.lines()))
    begun = len(told.told)
    await server.stop()
    objects.remove_pod("goes")
    objects.remove_nad("net-a")
    server.storage.compact()
    await server.start()
    await told.until(lambda: told.lines()[-2:] == ["-pod goes", "listed"])
    assert [line for line in told.lines(since=begun) if line != "listed"] == ["-nad net-a", "-pod goes"]


async def test_events_that_come_twice_or_overtaken_are_told_once(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    told = await follow()
    await told.until_listed()
    await eventually(lambda: len(server.watches) == 3)
    begun = len(told.told)
    server.faults.repeated = server.faults.swapped = True
    objects.add_pod("web-0")
    objects.remove_pod("web-0")
    objects.add_pod("web-1")
    await told.until(lambda: "+pod web-1" in told.lines())
    assert "+pod web-0" not in told.lines(since=begun)


async def test_an_unreadable_object_is_a_problem_and_the_list_is_not_complete(
    follow: Follow, objects: ClusterObjects
) -> None:
    objects.add_pod("bad", status={"conditions": "none"})
    objects.add_pod("good")
    told = await follow()
    await told.until_listed()
    (problem,) = told.problems
    assert (problem.kind, problem.namespace, problem.name) == ("Pod", "blue", "bad")
    assert problem.uid == objects.pod("bad")["metadata"]["uid"]
    assert problem.reason == "ObjectUnreadable"
    assert "$.status.conditions" in problem.message
    assert told.lines()[-1] == "listed in part"
    assert "+pod good" in told.lines()
    objects.change_pod("bad", {"status": {"conditions": []}})
    await told.until_listed(2)
    assert told.lines()[-2:] == ["+pod bad", "listed"]


async def test_an_emptied_cluster_is_told_as_gone(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    told = await follow()
    await told.until_listed()
    objects.add_pod("web-0")
    objects.add_nad("net-a")
    await told.until(lambda: {"+pod web-0", "+nad net-a"} <= set(told.lines()))
    server.empty_storage()
    server.forget_history()
    await told.until(lambda: {"-pod web-0", "-nad net-a", "-namespace blue"} <= set(told.lines()))
    await told.until_listed(2)
    assert server.storage.objects(PODS) == {}
    assert objects.definition() is not None


async def test_a_cut_at_any_byte_loses_nothing(follow: Follow, objects: ClusterObjects, server: FakeApiServer) -> None:
    told = await follow()
    await told.until_listed()
    for number in range(40):
        server.faults.cuts = [number * 37] * 3
        server.end_watches()
        objects.add_pod(f"web-{number}")
        await told.until(partial(_was_told, told, f"+pod web-{number}"))
    pods = [line for line in told.lines() if line.startswith("+pod")]
    assert pods == [f"+pod web-{number}" for number in range(40)]


def _was_told(told: ToldSource, line: str) -> bool:
    return line in told.lines()
