"""A node selector: pods of nodes that do not match are sent as excluded, and again when that changes."""

from tests.manager.kubernetes.conftest import Follow
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer

OURS = "agent=contrail"


async def test_pods_of_other_nodes_are_excluded(follow: Follow, objects: ClusterObjects) -> None:
    objects.add_node("ours", agent="contrail")
    objects.add_node("other")
    for node in ("ours", "other", "unknown"):
        objects.add_pod(f"on-{node}", node=node)
    recorded = await follow(node_selector=OURS)
    await recorded.until_listed()
    assert [recorded.pod(f"on-{node}").excluded for node in ("ours", "other", "unknown")] == [False, True, True]


async def test_pods_are_sent_again_when_their_node_begins_or_ceases_to_match(
    follow: Follow, objects: ClusterObjects
) -> None:
    objects.add_node("other")
    objects.add_pod("one", node="other")
    objects.add_pod("two", node="third")
    recorded = await follow(node_selector=OURS)
    await recorded.until_listed()
    objects.add_node("other", agent="contrail")
    await recorded.until(lambda: not recorded.pod("one").excluded)
    assert recorded.pod("two").excluded
    objects.add_node("third", agent="contrail")
    await recorded.until(lambda: not recorded.pod("two").excluded)
    objects.add_node("other")
    await recorded.until(lambda: recorded.pod("one").excluded)
    objects.remove_node("third")
    await recorded.until(lambda: recorded.pod("two").excluded)


async def test_a_new_pod_is_sent_as_its_node_is(follow: Follow, objects: ClusterObjects) -> None:
    objects.add_node("ours", agent="contrail")
    recorded = await follow(node_selector=OURS)
    await recorded.until_listed()
    objects.add_pod("one", node="ours")
    objects.add_pod("two", node="other")
    await recorded.until(lambda: {"+pod one", "+pod two"} <= set(recorded.lines()))
    assert (recorded.pod("one").excluded, recorded.pod("two").excluded) == (False, True)


async def test_nodes_are_watched_only_with_a_selector(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    objects.add_pod("one", node="unknown")
    recorded = await follow()
    await recorded.until_listed()
    assert not recorded.pod("one").excluded
    assert not [request for request in server.requests if request.endswith(" nodes")]
