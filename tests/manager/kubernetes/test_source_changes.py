"""Changes are sent once and in order, also those made while the server was unreachable."""

from functools import partial

from tests.manager.kubernetes.conftest import Follow
from tests.support.cluster_objects import CIDR_KEY, ClusterObjects
from tests.support.fake_apiserver.kinds import PODS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.recorded_source import RecordedSource


async def test_pods_and_nads_are_sent_when_created_changed_and_deleted(follow: Follow, objects: ClusterObjects) -> None:
    recorded = await follow()
    await recorded.until_listed()
    begun = len(recorded.events)
    objects.add_nad("net-a")
    await recorded.until(lambda: "+nad net-a" in recorded.lines())
    objects.change_nad("net-a", {"metadata": {"annotations": {CIDR_KEY: "10.2.0.0/16"}}})
    await recorded.until(lambda: recorded.nad("net-a").annotations[CIDR_KEY] == "10.2.0.0/16")
    objects.add_pod("web-0")
    await recorded.until(lambda: "+pod web-0" in recorded.lines())
    objects.remove_pod("web-0")
    await recorded.until(lambda: "-pod web-0" in recorded.lines())
    objects.remove_nad("net-a")
    await recorded.until(lambda: "-nad net-a" in recorded.lines())
    assert recorded.lines(since=begun) == ["+nad net-a", "+nad net-a", "+pod web-0", "-pod web-0", "-nad net-a"]


async def test_a_pod_is_sent_once_it_is_bound(follow: Follow, objects: ClusterObjects) -> None:
    recorded = await follow()
    await recorded.until_listed()
    objects.add_pod("waits", node=None)
    objects.add_pod("bound")
    await recorded.until(lambda: "+pod bound" in recorded.lines())
    assert "+pod waits" not in recorded.lines()
    objects.change_pod("waits", {"spec": {"nodeName": "node-7"}})
    await recorded.until(lambda: "+pod waits" in recorded.lines())
    assert recorded.pod("waits").node == "node-7"


async def test_a_replaced_pod_is_sent_as_gone_first(follow: Follow, objects: ClusterObjects) -> None:
    first = objects.add_pod("web-0")
    recorded = await follow()
    await recorded.until_listed()
    begun = len(recorded.events)
    objects.remove_pod("web-0")
    second = objects.add_pod("web-0")
    await recorded.until(lambda: recorded.pod("web-0").uid == second)
    assert recorded.lines(since=begun) == ["-pod web-0", "+pod web-0"]
    assert first != second


async def test_objects_deleted_while_the_server_was_down_are_sent_as_gone(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    recorded = await follow()
    await recorded.until_listed()
    objects.add_pod("stays")
    objects.add_pod("goes")
    objects.add_nad("net-a")
    await recorded.until(lambda: {"+pod goes", "+nad net-a"} <= set(recorded.lines()))
    begun = len(recorded.events)
    await server.stop()
    objects.remove_pod("goes")
    objects.remove_nad("net-a")
    server.storage.compact()
    await server.start()
    await recorded.until(lambda: recorded.lines()[-2:] == ["-pod goes", "listed"])
    assert [line for line in recorded.lines(since=begun) if line != "listed"] == ["-nad net-a", "-pod goes"]


async def test_duplicate_and_reordered_watch_events_are_sent_once(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    recorded = await follow()
    await recorded.until_listed()
    await eventually(lambda: len(server.watches) == 3)
    begun = len(recorded.events)
    server.faults.repeated = server.faults.swapped = True
    objects.add_pod("web-0")
    objects.remove_pod("web-0")
    objects.add_pod("web-1")
    await recorded.until(lambda: "+pod web-1" in recorded.lines())
    assert "+pod web-0" not in recorded.lines(since=begun)


async def test_an_undecodable_object_is_a_problem_and_makes_the_list_incomplete(
    follow: Follow, objects: ClusterObjects
) -> None:
    objects.add_pod("bad", status={"conditions": "none"})
    objects.add_pod("good")
    recorded = await follow()
    await recorded.until_listed()
    (problem,) = recorded.problems
    assert (problem.kind, problem.namespace, problem.name) == ("Pod", "blue", "bad")
    assert problem.uid == objects.pod("bad")["metadata"]["uid"]
    assert problem.reason == "ObjectUnreadable"
    assert "$.status.conditions" in problem.message
    assert recorded.lines()[-1] == "listed in part"
    assert "+pod good" in recorded.lines()
    objects.change_pod("bad", {"status": {"conditions": []}})
    await recorded.until_listed(2)
    assert recorded.lines()[-2:] == ["+pod bad", "listed"]


async def test_an_emptied_cluster_is_sent_as_gone(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    recorded = await follow()
    await recorded.until_listed()
    objects.add_pod("web-0")
    objects.add_nad("net-a")
    await recorded.until(lambda: {"+pod web-0", "+nad net-a"} <= set(recorded.lines()))
    server.empty_storage()
    server.forget_history()
    await recorded.until(lambda: {"-pod web-0", "-nad net-a", "-namespace blue"} <= set(recorded.lines()))
    await recorded.until_listed(2)
    assert server.storage.objects(PODS) == {}
    assert objects.definition() is not None


async def test_a_connection_cut_at_any_byte_loses_nothing(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    recorded = await follow()
    await recorded.until_listed()
    for number in range(40):
        server.faults.cuts = [number * 37] * 3
        server.end_watches()
        objects.add_pod(f"web-{number}")
        await recorded.until(partial(_was_sent, recorded, f"+pod web-{number}"))
    pods = [line for line in recorded.lines() if line.startswith("+pod")]
    assert pods == [f"+pod web-{number}" for number in range(40)]


def _was_sent(recorded: RecordedSource, line: str) -> bool:
    return line in recorded.lines()
