"""Events about networks that nodes do not connect, and subnets to which they have no route."""

import msgspec

from contrail_config.objects import FqName, Refusal, Subnet, VirtualNetwork, network_uuid
from manager.controller.refusal_reporter import MAX_NODES
from manager.source import Pod
from tests.manager.conftest import Start
from tests.support.fake_clock import FakeClock
from tests.support.pods import make_nad, make_namespace, make_pod, reference
from tests.support.running_manager import RunningManager

NAD = make_nad("net-a", cidr="10.7.0.0/24")
NAME = ("default-domain", f"k8s-{NAD.namespace}", "k8s-net-a-pod-network")
MESSAGE = "network a: ip_fabric_forwarding: no route to 10.7.0.0/24: it overlaps the node's route to 10.0.0.0/8"


def refused(
    network: FqName = NAME, *, reason: str = "node-route", message: str = MESSAGE, subnet: str = "10.7.0.0/24"
) -> Refusal:
    return Refusal(network, 5, reason, message, subnet, connected=True)


def pod_on(node: str, networks: str | None = NAD.name, generation: int = 1) -> Pod:
    pod = make_pod(f"on-{node}", networks=networks, generation=generation)
    return msgspec.structs.replace(pod, node=node)


POD = pod_on("worker-1")


async def report(running: RunningManager, node: str, *refusals: Refusal) -> None:
    running.manager.refused(node, refusals)
    await running.idle()


async def events(running: RunningManager) -> int:
    """Returns the number of events about refusals on the NAD, repeated ones included."""
    await running.manager.recorder.flush()
    return sum(one.count for one in await running.store.events() if one.reason == "SubnetRefused")


async def test_the_nad_gets_an_event_that_names_node_network_subnet_and_route(running: RunningManager) -> None:
    await running.send_list(NAD, POD)
    await report(running, "worker-1", refused())
    assert (await running.events_on(NAD))[1:] == [("SubnetRefused", f"node worker-1: {MESSAGE}")]


async def test_a_network_that_is_not_connected_has_an_event_of_its_own(running: RunningManager) -> None:
    await running.send_list(NAD, POD)
    await report(running, "worker-1", Refusal(NAME, 5, "equal-vni", "network a: not connected"))
    assert (await running.events_on(NAD))[1:] == [("NetworkNotConnected", "node worker-1: network a: not connected")]


async def test_a_refusal_has_one_event_however_often_it_is_reported_until_it_ends(running: RunningManager) -> None:
    await running.send_list(NAD, POD)
    await report(running, "worker-1", refused())
    await report(running, "worker-1", refused())
    await report(running, "worker-1", refused(message="it overlaps another route now"))
    assert len(await running.reasons(NAD)) == 2
    await report(running, "worker-1")
    await report(running, "worker-1", refused(message="again"))
    assert (await running.events_on(NAD))[2:] == [("SubnetRefused", "node worker-1: again")]


async def test_each_subnet_and_reason_has_an_event(running: RunningManager) -> None:
    await running.send_list(NAD, POD)
    await report(running, "worker-1", refused(), refused(subnet="fd07::/64", message="other"))
    await report(running, "worker-1", refused(reason="not-allowed", message="third"), refused(message="as before"))
    messages = [message for _, message in (await running.events_on(NAD))[1:]]
    assert messages == [f"node worker-1: {text}" for text in (MESSAGE, "other", "third")]


async def test_of_many_nodes_only_the_first_ones_are_named(running: RunningManager) -> None:
    await running.send_list(NAD, *(pod_on(f"worker-{number}") for number in range(MAX_NODES + 3)))
    for number in range(MAX_NODES + 3):
        await report(running, f"worker-{number}", refused())
    assert len(await running.reasons(NAD)) == 1 + MAX_NODES


async def test_a_node_whose_refusals_come_and_go_gets_events_at_a_limited_rate(start: Start) -> None:
    clock = FakeClock()
    running = await start(clock=clock)
    await running.send_list(NAD, POD)
    refusals = [refused(reason=f"reason-{number}") for number in range(32)]
    for _ in range(4):
        await report(running, "worker-1", *refusals)
        await report(running, "worker-1")
    assert await events(running) == 32
    clock.advance(3)
    await report(running, "worker-1", *refusals)
    assert await events(running) == 35


async def test_a_refusal_beyond_the_limit_is_reported_later(start: Start) -> None:
    clock = FakeClock()
    running = await start(clock=clock)
    await running.send_list(NAD, POD)
    refusals = [refused(reason=f"reason-{number}") for number in range(40)]
    await report(running, "worker-1", *refusals)
    assert await events(running) == 32
    clock.advance(10)
    for _ in range(2):
        await report(running, "worker-1", *refusals)
        assert await events(running) == 40


async def test_the_limit_is_that_of_each_node(start: Start) -> None:
    running = await start(clock=FakeClock())
    await running.send_list(NAD, POD, pod_on("worker-2"))
    for node in ("worker-1", "worker-2"):
        await report(running, node, *[refused(reason=f"reason-{number}") for number in range(40)])
    assert await events(running) == 64


async def test_a_refusal_of_a_network_that_is_not_known_yet_is_reported_later(running: RunningManager) -> None:
    await running.send_list(POD)
    await report(running, "worker-1", refused())
    await running.apply(NAD)
    await report(running, "worker-1", refused())
    assert (await running.reasons(NAD))[1:] == ["SubnetRefused"]


async def test_a_network_in_which_the_node_has_no_pod_is_reported_once_it_has_one(running: RunningManager) -> None:
    await running.send_list(NAD, pod_on("worker-1", networks=None), pod_on("worker-2"))
    for node in ("worker-1", "worker-3"):
        await report(running, node, refused())
    assert await events(running) == 0
    await running.remove(pod_on("worker-1", networks=None))
    await running.apply(pod_on("worker-1", generation=2))
    await report(running, "worker-1", refused())
    assert (await running.events_on(NAD))[1:] == [("SubnetRefused", f"node worker-1: {MESSAGE}")]


async def test_an_isolated_namespace_gets_the_event_of_its_network(running: RunningManager) -> None:
    await running.send_list(make_namespace("blue", isolation="true"), pod_on("worker-1", networks=None))
    await report(running, "worker-1", refused(("default-domain", "k8s-blue", "k8s-blue-pod-network")))
    (event,) = await running.store.events(kind="Namespace", name="blue")
    assert (event.reason, event.message) == ("SubnetRefused", f"node worker-1: {MESSAGE}")


async def test_a_network_of_somebody_else_gets_the_event_itself(running: RunningManager) -> None:
    name = ("default-domain", "k8s-shop", "their-own")
    await running.store.put_network(VirtualNetwork(name, network_uuid(name), (Subnet("10.9.0.0/24", None),)))
    nad, pod = make_nad("theirs", cidr=None, network=reference("k8s-shop", "their-own")), pod_on("worker-1", "theirs")
    await running.send_list(nad, pod)
    await running.catch_up()
    await report(running, "worker-1", refused(name))
    (event,) = await running.store.events(kind="VirtualNetwork", name=network_uuid(name))
    assert event.reason == "SubnetRefused"
