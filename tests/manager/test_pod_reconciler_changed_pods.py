"""Rule 5: once a pod's list is written, only the pod's end changes it."""

from manager.api.types import PodState
from tests.support.pods import make_nad, make_namespace, make_pod, reference
from tests.support.running_manager import RunningManager

NET_A = make_nad("net-a")
NET_B = make_nad("net-b", cidr="10.2.0.0/16")
BEFORE = make_pod(networks="net-a")


async def test_a_change_is_reported_once_and_changes_nothing(running: RunningManager) -> None:
    await running.send_list(NET_A, NET_B, BEFORE)
    written = await running.vm(BEFORE)
    after = make_pod(networks="net-a,net-b")
    await running.apply(after)
    await running.apply(after)
    await running.send_list(NET_A, NET_B, after)
    assert await running.vm(BEFORE) == written
    (_, (reason, message)) = await running.events_on(BEFORE)
    assert reason == "NetworksChanged"
    assert message == ("the networks of a pod cannot change after its creation: 3 interfaces instead of 2")
    view = await running.view(BEFORE)
    assert (view.state, view.reason, view.message) == (PodState.READY, reason, message)


async def test_each_change_is_reported(running: RunningManager) -> None:
    await running.send_list(NET_A, NET_B, BEFORE)
    await running.apply(make_pod(networks="net-b"))
    await running.apply(make_pod(networks="net-a", default_gw="net-a"))
    assert [message.rpartition("creation: ")[2] for _, message in (await running.events_on(BEFORE))[1:]] == [
        "index 1: network blue/net-b instead of blue/net-a",
        "index 1: default-gw true instead of none",
    ]


async def test_a_reverted_change_clears_the_warning(running: RunningManager) -> None:
    await running.send_list(NET_A, NET_B, BEFORE)
    await running.apply(make_pod(networks="net-b"))
    await running.apply(BEFORE)
    view = await running.view(BEFORE)
    assert (view.state, view.reason) == (PodState.READY, None)
    assert len(await running.events_on(BEFORE)) == 2


async def test_an_invalid_change_is_reported_as_such(running: RunningManager) -> None:
    await running.send_list(NET_A, BEFORE)
    await running.apply(make_pod(networks="net-a,,"))
    await running.apply(make_pod(networks="net-a,nope"))
    assert [message.rpartition("creation: ")[2] for _, message in (await running.events_on(BEFORE))[1:]] == [
        "k8s.v1.cni.cncf.io/networks, element 2: is empty: remove the extra comma",
        "network attachment definition blue/nope not found",
    ]
    assert len((await running.vm(BEFORE)).interfaces) == 2


async def test_an_equivalent_annotation_is_no_change(running: RunningManager) -> None:
    await running.send_list(NET_A, BEFORE)
    await running.apply(make_pod(networks=' [{"name": "net-a", "namespace": "blue"}] '))
    assert await running.reasons(BEFORE) == ["InterfacesAssigned"]


async def test_changes_of_its_networks_do_not_affect_an_assigned_pod(running: RunningManager) -> None:
    await running.send_list(NET_A, BEFORE)
    written = await running.vm(BEFORE)
    chosen = make_namespace(network=reference("k8s-blue", "k8s-net-a-pod-network"))
    await running.apply(make_nad("net-a", cidr="nonsense"), chosen)
    await running.remove(NET_A)
    await running.apply(make_pod(networks="blue/net-a"))
    assert await running.vm(BEFORE) == written
    assert await running.reasons(BEFORE) == ["InterfacesAssigned"]
