"""Pod reconciler: order and addresses of the interface list, events, and release."""

import json

import msgspec
import pytest

from contrail_config.errors import NotFoundError
from contrail_config.objects import EventType
from manager.api.queries import ItemFilter
from manager.api.types import PodState
from manager.configuration import ManagerConfiguration, MetaPlugin, MetaPluginSettings, PodNetworkSettings
from manager.source import Applied, Gone
from tests.manager.conftest import Start
from tests.support.pods import make_nad, make_namespace, make_pod, reference
from tests.support.running_manager import RunningManager

NET_A = make_nad("net-a", cidr="10.1.0.0/16,fd00:1::/64")
NET_B = make_nad("net-b", namespace="other", cidr="10.2.0.0/24")


async def test_a_pod_gets_its_whole_list_and_an_event(running: RunningManager) -> None:
    pod = make_pod(networks="net-a,other/net-b@left,net-a")
    await running.send_list(NET_A, NET_B, pod)
    vm = await running.vm(pod)
    assert [interface.nad for interface in vm.interfaces] == [None, "blue/net-a", "other/net-b", "blue/net-a"]
    assert [[address.address for address in interface.addresses] for interface in vm.interfaces] == [
        ["10.32.0.2"],
        ["10.1.0.2", "fd00:1::2"],
        ["10.2.0.2"],
        ["10.1.0.3", "fd00:1::3"],
    ]
    (event,) = await running.store.events(kind="Pod")
    assert (event.type, event.reason, event.uid) == (EventType.NORMAL, "InterfacesAssigned", pod.uid)
    assert "left 10.2.0.2 (other/net-b)" in event.message
    assert (await running.view(pod)).state is PodState.READY


async def test_under_multus_events_and_views_have_its_names_of_interfaces(start: Start) -> None:
    running = await start(configuration=ManagerConfiguration(meta_plugin=MetaPluginSettings(kind=MetaPlugin.MULTUS)))
    pod = make_pod(networks="net-a,other/net-b@left,net-a")
    await running.send_list(NET_A, NET_B, pod)
    (event,) = await running.store.events(kind="Pod")
    assert "net1 10.1.0.2 fd00:1::2 (blue/net-a), left 10.2.0.2 (other/net-b), net3 10.1.0.3" in event.message
    assert (await running.view(pod)).names == ("eth0", "net1", "left", "net3")
    views = (await running.manager.queries.interfaces(ItemFilter())).items
    assert [view.name for view in views] == ["eth0", "net1", "left", "net3"]


async def test_a_pod_of_an_excluded_node_gets_no_interfaces_and_no_event(running: RunningManager) -> None:
    pod = make_pod(networks="net-a")
    excluded = msgspec.structs.replace(pod, excluded=True)
    await running.send_list(NET_A, excluded)
    view = await running.view(pod)
    assert (view.state, view.reason, view.machine) == (PodState.EXCLUDED, None, None)
    assert await running.reasons(pod) == []
    await running.apply(pod)
    assert (await running.view(pod)).state is PodState.READY


async def test_a_pod_whose_node_becomes_excluded_keeps_its_interfaces(running: RunningManager) -> None:
    pod = make_pod(networks="net-a")
    await running.send_list(NET_A, pod)
    before = await running.vm(pod)
    await running.apply(msgspec.structs.replace(pod, excluded=True))
    assert await running.vm(pod) == before
    assert (await running.view(pod)).state is PodState.READY
    await running.remove(pod)
    assert await running.allocated_count() == 0


async def test_a_waiting_pod_whose_node_becomes_excluded_waits_no_more(running: RunningManager) -> None:
    pod = make_pod(networks="net-a")
    await running.send_list(pod)
    await running.apply(msgspec.structs.replace(pod, excluded=True))
    await running.apply(NET_A)
    assert (await running.view(pod)).state is PodState.EXCLUDED
    assert await running.allocated_count() == 0


async def test_a_deleted_pod_is_released_whole(running: RunningManager) -> None:
    pod = make_pod(networks="net-a,net-a")
    await running.send_list(NET_A, pod)
    assert await running.allocated_count() == 3
    await running.remove(pod)
    with pytest.raises(NotFoundError):
        await running.vm(pod)
    assert await running.allocated_count() == 0
    assert running.manager.pods.records == {}


async def test_a_pod_in_a_terminal_phase_is_gone(running: RunningManager) -> None:
    pod = make_pod()
    await running.send_list(pod)
    await running.apply(make_pod(gone=True))
    assert await running.allocated_count() == 0
    await running.apply(make_pod(gone=True))
    await running.remove(make_pod(gone=True))
    assert await running.store.virtual_machines() == []


async def test_a_host_network_pod_gets_no_interface(running: RunningManager) -> None:
    pod = make_pod(networks="nowhere", host_network=True)
    await running.send_list(pod)
    view = await running.view(pod)
    assert (view.state, view.reason, view.machine) == (PodState.HOST_NETWORK, None, None)
    assert await running.allocated_count() == 0
    assert await running.events_on(pod) == []
    await running.remove(pod)
    assert await running.store.virtual_machines() == []


async def test_a_recreated_pod_replaces_its_predecessor(running: RunningManager) -> None:
    """As a StatefulSet does; the deletion of the first is sent before, after, or not at all."""
    first, second, third = (make_pod(networks="net-a", generation=generation) for generation in (1, 2, 3))
    await running.send_list(NET_A, first)
    await running.apply(second)
    await running.remove(first)
    await running.apply(third)
    (vm,) = await running.store.virtual_machines()
    assert vm.uuid == third.uid
    assert await running.allocated_count() == 2


async def test_a_recreated_pod_gets_the_event_of_its_predecessor_too(running: RunningManager) -> None:
    first, second = (make_pod(networks="nowhere", generation=generation) for generation in (1, 2))
    await running.send_list(first)
    await running.send(Gone(first), Applied(second))
    assert await running.reasons(second) == ["NetworkNotFound"]


async def test_requested_addresses_macs_and_routes_are_assigned(running: RunningManager) -> None:
    element = {"name": "net-a", "ips": ["10.1.7.7"], "mac": "02:00:00:00:00:07", "default-route": ["10.1.9.9"]}
    pod = make_pod(networks=json.dumps([element]))
    await running.send_list(NET_A, pod)
    (_, interface) = (await running.vm(pod)).interfaces
    assert interface.mac == "02:00:00:00:00:07"
    assert [(address.address, address.gateway) for address in interface.addresses] == [
        ("10.1.7.7", "10.1.9.9"),
        ("fd00:1::2", "fd00:1::1"),
    ]


async def test_warnings_on_a_ready_pod_are_recorded_once(running: RunningManager) -> None:
    overlapping = make_nad("net-o", cidr="10.1.128.0/17")
    pod = make_pod(networks="net-a,net-o")
    await running.send_list(NET_A, overlapping, pod)
    await running.send_list(NET_A, overlapping, pod)
    assert await running.reasons(pod) == ["InterfacesAssigned", "OverlappingNetworks"]
    assert [event.count for event in await running.store.events(kind="Pod")] == [1, 1]


async def test_the_namespace_selects_the_network_at_index_0(running: RunningManager) -> None:
    chosen = make_namespace("blue", network=reference("k8s-blue", "k8s-net-a-pod-network"))
    pod, other = make_pod(), make_pod(namespace="red")
    await running.send_list(chosen, NET_A, pod, other)
    assert (await running.vm(pod)).interfaces[0].network[2] == "k8s-net-a-pod-network"
    assert (await running.vm(other)).interfaces[0].network[2] == "k8s-default-pod-network"


async def test_the_pod_network_is_as_configured(start: Start) -> None:
    settings = PodNetworkSettings(subnets=("10.40.0.0/24", "fd40::/64"), gateway=("10.40.0.254",), dns=("10.40.0.53",))
    running = await start(ManagerConfiguration(cluster_name="prod", pod_network=settings))
    pod = make_pod()
    await running.send_list(pod)
    ipv4, ipv6 = (await running.vm(pod)).interfaces[0].addresses
    assert (ipv4.gateway, ipv4.dns) == ("10.40.0.254", ("10.40.0.53",))
    assert ipv6.gateway == "fd40::1"
    network = await running.network("prod-default-pod-network")
    assert network is not None
    assert network.vni > 0
