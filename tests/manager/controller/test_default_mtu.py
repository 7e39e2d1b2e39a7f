"""Default MTU: the smallest tunnel MTU of the nodes, except that of a few nodes with much less than the others."""

import msgspec
import pytest

from manager.configuration import ManagerConfiguration, PodNetworkSettings
from manager.controller.default_mtu import LOWEST, NOT_MEASURED, OUTLIERS
from tests.manager.conftest import Start
from tests.support.pods import make_nad, make_pod
from tests.support.running_manager import RunningManager

V6_NAD = make_nad("net-6", cidr="fd00:6::/64")


@pytest.fixture
async def across(start: Start) -> RunningManager:
    """A manager of networks that span nodes."""
    return await start(ManagerConfiguration(network_slices=True))


def report(running: RunningManager, *mtus: int) -> None:
    for number, mtu in enumerate(mtus):
        running.manager.default_mtu.reported(f"node-{number}", mtu)


async def new_pod(running: RunningManager, name: str, *, node: str = "node-1", networks: str = "") -> list[int]:
    """Returns the MTUs of a new pod."""
    pod = msgspec.structs.replace(make_pod(name, networks=networks or None), node=node)
    await running.apply(pod)
    return [interface.mtu for interface in (await running.vm(pod)).interfaces]


async def judge(running: RunningManager) -> None:
    """Lets the time pass after which nodes that do not count get events."""
    queue = running.manager.default_mtu.queue
    if OUTLIERS in queue.scheduled:
        queue.add(OUTLIERS)
    await running.idle()


async def node_events(running: RunningManager) -> list[tuple[str, str, str]]:
    await judge(running)
    return [(each.name, each.uid, each.reason) for each in await running.store.events(kind="Node")]


async def test_new_pods_get_the_smallest_tunnel_mtu_of_all_nodes(across: RunningManager) -> None:
    await across.send_list(make_nad("net-a"))
    report(across, 1450, 1410, 1450)
    assert await new_pod(across, "web", networks="net-a") == [1410, 1410]


async def test_a_change_is_followed_and_running_pods_keep_theirs(across: RunningManager) -> None:
    await across.send_list()
    report(across, 8950, 8950)
    pod = make_pod("first")
    await across.apply(pod)
    report(across, 1450, 8950)
    assert await new_pod(across, "second") == [1450]
    report(across, 8950)
    assert await new_pod(across, "third") == [8950]
    across.manager.pods.queue.add(pod.key)
    await across.idle()
    assert [interface.mtu for interface in (await across.vm(pod)).interfaces] == [8950]


async def test_a_node_that_starts_keeps_what_it_had_reported(across: RunningManager) -> None:
    await across.send_list()
    report(across, 1450, 8950)
    across.manager.default_mtu.reported("node-0", None)
    assert await new_pod(across, "web") == [1450]


async def test_a_node_that_is_gone_does_not_count(across: RunningManager) -> None:
    await across.send_list()
    report(across, 1450, 8950)
    across.manager.default_mtu.removed("node-0")
    assert await new_pod(across, "web") == [8950]


async def test_a_configured_mtu_wins(start: Start) -> None:
    running = await start(ManagerConfiguration(network_slices=True, pod_network=PodNetworkSettings(mtu=1300)))
    own = make_nad("net-a", config='{"type": "contrail-k8s-cni", "mtu": 9000}')
    await running.send_list(own, make_nad("net-b"))
    report(running, 1450, 1450)
    assert await new_pod(running, "web", networks="net-a,net-b") == [1300, 9000, 1300]


async def test_before_any_node_has_reported_the_mtu_fits_tunnels_of_either_family(across: RunningManager) -> None:
    await across.send_list()
    assert await new_pod(across, "web") == [NOT_MEASURED]


async def test_without_network_slices_nothing_is_measured(running: RunningManager) -> None:
    await running.send_list(make_nad("net-a"))
    report(running, 1450, 1450)
    assert await new_pod(running, "web", networks="net-a") == [1500, 1500]
    assert {network.mtu for network in await running.store.networks()} == {1500}


async def test_ipv6_gets_its_minimum_where_tunnels_have_less(across: RunningManager) -> None:
    await across.send_list(V6_NAD)
    report(across, 1230, 1230)
    assert await new_pod(across, "web", networks="net-6") == [1230, 1280]


async def test_no_node_lowers_it_to_what_no_network_has(across: RunningManager) -> None:
    await across.send_list()
    report(across, 1450, 1)
    assert await new_pod(across, "web", node="node-0") == [LOWEST]
    assert LOWEST == 1280 - 70


async def test_a_node_with_much_less_than_most_lowers_only_the_mtu_of_its_own_pods(across: RunningManager) -> None:
    await across.send_list()
    report(across, 8950, 1450, 8950)
    assert await new_pod(across, "far", node="node-0") == [8950]
    assert await new_pod(across, "near", node="node-1") == [1450]


async def test_a_node_with_much_less_than_most_gets_one_event(across: RunningManager) -> None:
    await across.send_list()
    report(across, 8950, 1450, 8950)
    assert await node_events(across) == [("node-1", "node-1", "TunnelMtuTooLow")]
    report(across, 8900, 1450, 8950)
    await judge(across)
    (event,) = await across.store.events(kind="Node")
    assert event.count == 1
    assert "node-1: packets of pods in its tunnels may have 1450 bytes, those of most nodes 8950" in event.message


async def test_a_node_that_has_much_less_again_gets_another_event(across: RunningManager) -> None:
    await across.send_list()
    for mtu in (1450, 8950, 1450):
        report(across, 8950, mtu, 8950)
        await judge(across)
    (event,) = await across.store.events(kind="Node")
    assert event.count == 2


async def test_reports_that_arrive_one_by_one_blame_no_node(across: RunningManager) -> None:
    await across.send_list()
    for number, mtu in enumerate((8950, 8950, 1450, 1450, 1450)):
        across.manager.default_mtu.reported(f"node-{number}", mtu)
        await across.idle()
    assert await node_events(across) == []


async def test_a_node_can_neither_raise_what_others_have_nor_lower_it_by_more_than_a_tenth(
    across: RunningManager,
) -> None:
    await across.send_list()
    for number, (mtu, expected) in enumerate([(65535, 1450), (1306, 1306), (1304, 1450), (1, 1450)]):
        report(across, mtu, 1450, 1450)
        assert await new_pod(across, f"pod-{number}", node="node-1") == [expected]


async def test_the_smallest_counts_where_no_kind_of_nodes_is_the_majority(across: RunningManager) -> None:
    await across.send_list()
    report(across, 8950, 1450, 8950, 1450)
    assert await new_pod(across, "web", node="node-0") == [1450]
    assert await node_events(across) == []


async def test_the_default_mtu_is_a_metric(across: RunningManager) -> None:
    report(across, 1450, 1410)
    assert across.registry.get_sample_value("contrail_manager_default_mtu") == 1410
