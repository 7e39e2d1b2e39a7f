"""A restarted manager records no event for changes that caused none before."""

from manager.configuration import ManagerConfiguration, PodNetworkSettings
from tests.support.pods import make_nad, make_namespace, make_pod, reference
from tests.support.running_manager import running_manager
from tests.support.stores_with_events import StoreWithEvents

NET_A = make_nad("net-a")


async def test_a_new_family_of_the_pod_network_causes_no_event(store: StoreWithEvents) -> None:
    pod = make_pod(networks="net-a", default_gw="eth1")
    async with running_manager(store) as before:
        await before.send_list(NET_A, pod)
    dual = ManagerConfiguration(pod_network=PodNetworkSettings(subnets=("10.32.0.0/12", "fd00:32::/64")))
    async with running_manager(store, dual) as after:
        await after.send_list(NET_A, pod)
        assert await after.reasons(pod) == ["InterfacesAssigned"]


async def test_another_choice_of_the_namespace_causes_no_event(store: StoreWithEvents) -> None:
    pod, changed = make_pod(), make_namespace(network=reference("k8s-blue", "k8s-net-a-pod-network"))
    async with running_manager(store) as before:
        await before.send_list(make_namespace(), NET_A, pod)
        await before.apply(changed)
        assert await before.reasons(pod) == ["InterfacesAssigned"]
    async with running_manager(store) as after:
        await after.send_list(changed, NET_A, pod)
        assert await after.reasons(pod) == ["InterfacesAssigned"]


async def test_a_changed_request_of_the_pod_causes_one_event(store: StoreWithEvents) -> None:
    changed = make_pod(networks="net-a", default_gw="eth1")
    async with running_manager(store) as before:
        await before.send_list(NET_A, make_pod(networks="net-a"))
        await before.apply(changed)
        events = await before.events_on(changed)
        assert [reason for reason, _ in events] == ["InterfacesAssigned", "NetworksChanged"]
    async with running_manager(store) as after:
        await after.send_list(NET_A, changed)
        assert await after.events_on(changed) == events
