"""Pod networks of isolated namespaces: created, used, changed and deleted with the annotations of the namespace."""

import pytest

from contrail_config.objects import PodNetwork, Subnet, network_uuid
from manager.api.types import PodState
from manager.configuration import ManagerConfiguration, PodNetworkSettings
from manager.source import Applied, Listed
from tests.manager.conftest import Start
from tests.support.pods import make_nad, make_namespace, make_pod, reference
from tests.support.running_manager import RunningManager

ISOLATED = make_namespace("blue", isolation="true")
NAME = ("default-domain", "k8s-blue", "k8s-blue-pod-network")
POD_NETWORK = ("default-domain", "k8s-default", "k8s-default-pod-network")


async def test_pods_of_an_isolated_namespace_have_its_network_at_index_0(running: RunningManager) -> None:
    pod, other = make_pod(networks="net-a"), make_pod("other", namespace="red")
    await running.send_list(ISOLATED, make_nad("net-a"), pod, other)
    assert [interface.network[2] for interface in (await running.vm(pod)).interfaces] == [
        NAME[2],
        "k8s-net-a-pod-network",
    ]
    assert [interface.network for interface in (await running.vm(other)).interfaces] == [POD_NETWORK]
    assert await running.reasons(pod) == ["InterfacesAssigned"]


async def test_addresses_differ_from_those_of_the_cluster_pod_network_also_after_a_restart(
    start: Start, running: RunningManager
) -> None:
    pods = [make_pod("p1"), make_pod("p1", namespace="red"), make_pod("p2"), make_pod("p2", namespace="red")]
    await running.send_list(ISOLATED, *pods[:2])
    await running.manager.namespaces.close()
    restarted = await start()
    await restarted.send_list(ISOLATED, *pods)
    vms = [await restarted.vm(pod) for pod in pods]
    addresses = [address.address for vm in vms for address in vm.interfaces[0].addresses]
    assert len(set(addresses)) == len(addresses) == 4
    assert [vm.interfaces[0].pod_network for vm in vms] == [PodNetwork.NAMESPACE, PodNetwork.CLUSTER] * 2


async def test_a_pod_that_comes_with_its_namespace_waits_without_a_warning(running: RunningManager) -> None:
    pod = make_pod()
    await running.send_list()
    await running.send(Applied(ISOLATED), Applied(pod))
    assert (await running.vm(pod)).interfaces[0].network == NAME
    assert await running.reasons(pod) == ["InterfacesAssigned"]


async def test_the_network_is_like_the_cluster_pod_network(start: Start) -> None:
    settings = PodNetworkSettings(subnets=("10.40.0.0/16", "fd00:40::/64"), dns=("10.40.0.10",), mtu=1400)
    running = await start(configuration=ManagerConfiguration(pod_network=settings))
    await running.send_list(ISOLATED)
    network, cluster = await running.network(NAME[2]), await running.network(POD_NETWORK[2])
    assert network is not None
    assert cluster is not None
    assert (network.fq_name, network.uuid, network.namespace) == (NAME, network_uuid(NAME), "blue")
    assert network.vni != cluster.vni
    assert (network.subnets, network.dns, network.mtu) == (cluster.subnets, cluster.dns, cluster.mtu)
    assert network.has_node_blocks


async def test_a_nad_and_a_namespace_at_the_same_moment_never_share_a_network(running: RunningManager) -> None:
    """The first one has the name, whichever it is."""
    nad, pod = make_nad("blue", cidr="10.9.0.0/24"), make_pod()
    await running.send(Applied(nad), Applied(ISOLATED), Applied(pod), Listed())
    network = await running.network(NAME[2])
    assert network is not None
    assert (network.nad, network.namespace) == ("blue/blue", None)
    assert (await running.view(pod)).reason == "NetworkUnusable"


@pytest.mark.parametrize("text", ["true", "True", " TRUE "])
async def test_the_annotation_is_true_in_any_case(running: RunningManager, text: str) -> None:
    await running.send_list(make_namespace("blue", isolation=text))
    assert await running.network(NAME[2]) is not None


async def test_flags_of_the_namespace_are_those_of_its_network(running: RunningManager) -> None:
    await running.send_list(make_namespace("blue", isolation="true", ip_fabric_snat="true"))
    network = await running.network(NAME[2])
    assert network is not None
    assert (network.ip_fabric_snat, network.ip_fabric_forwarding) == (True, False)
    await running.apply(make_namespace("blue", isolation="true", ip_fabric_forwarding="true"))
    changed = await running.network(NAME[2])
    assert changed is not None
    assert (changed.ip_fabric_snat, changed.ip_fabric_forwarding) == (False, True)
    assert changed.vni == network.vni


async def test_flags_without_isolation_change_nothing(running: RunningManager) -> None:
    await running.send_list(make_namespace("blue", ip_fabric_snat="true"), make_pod())
    assert [network.fq_name for network in await running.store.networks()] == [POD_NETWORK]
    assert not (await running.store.networks())[0].ip_fabric_snat


async def test_the_network_is_deleted_with_its_namespace(running: RunningManager) -> None:
    pod = make_pod()
    await running.send_list(ISOLATED, pod)
    await running.remove(pod)
    await running.remove(ISOLATED)
    assert await running.network(NAME[2]) is None


async def test_a_network_with_pods_is_deleted_with_the_last_one(running: RunningManager) -> None:
    pod, late = make_pod(), make_pod("late")
    await running.send_list(ISOLATED, pod)
    await running.apply(make_namespace("blue"))
    await running.apply(late)
    assert (await running.vm(pod)).interfaces[0].network == NAME
    assert (await running.vm(late)).interfaces[0].network == POD_NETWORK
    assert await running.reasons(pod) == ["InterfacesAssigned"]
    await running.remove(pod)
    await running.wait_until_network_deleted(NAME[2])


async def test_a_namespace_that_is_isolated_again_keeps_its_network(running: RunningManager) -> None:
    pod, late = make_pod(), make_pod("late")
    await running.send_list(ISOLATED, pod)
    await running.apply(make_namespace("blue"))
    await running.apply(ISOLATED, late)
    assert (await running.vm(late)).interfaces[0].network == NAME
    network = await running.network(NAME[2])
    assert network is not None
    assert not network.retired


async def test_a_namespace_deleted_while_no_manager_ran_leaves_no_network(
    start: Start, running: RunningManager
) -> None:
    await running.send_list(ISOLATED)
    await running.manager.namespaces.close()
    restarted = await start()
    await restarted.send_list()
    assert await restarted.network(NAME[2]) is None


async def test_a_network_chosen_by_pod_or_namespace_wins(running: RunningManager) -> None:
    chosen = reference("k8s-blue", "k8s-net-a-pod-network")
    by_pod, by_namespace = make_pod("one", network=chosen), make_pod("two")
    await running.send_list(ISOLATED, make_nad("net-a"), by_pod)
    await running.apply(make_namespace("blue", isolation="true", network=chosen), by_namespace)
    for pod in (by_pod, by_namespace):
        assert (await running.vm(pod)).interfaces[0].network[2] == "k8s-net-a-pod-network"


@pytest.mark.parametrize("text", ["yes", "", "1"])
async def test_pods_wait_while_the_annotation_is_invalid(running: RunningManager, text: str) -> None:
    pod = make_pod()
    await running.send_list(make_namespace("blue", isolation=text), pod)
    ((reason, message),) = await running.events_on(pod)
    assert reason == "AnnotationInvalid"
    assert message == f"namespace blue, opencontrail.org/isolation: {text!r} is neither true nor false"
    await running.apply(ISOLATED)
    assert (await running.vm(pod)).interfaces[0].network == NAME


async def test_pods_do_not_wait_for_flags_of_a_namespace_that_is_not_isolated(running: RunningManager) -> None:
    pod = make_pod()
    await running.send_list(make_namespace("blue", ip_fabric_snat="yes", ip_fabric_forwarding=""), pod)
    assert [interface.network for interface in (await running.vm(pod)).interfaces] == [POD_NETWORK]


async def test_an_invalid_change_leaves_the_network_as_it_is(running: RunningManager) -> None:
    await running.send_list(ISOLATED)
    before = await running.network(NAME[2])
    await running.apply(make_namespace("blue", isolation="flase"))
    assert await running.network(NAME[2]) == before


async def test_pods_of_other_namespaces_cannot_join(running: RunningManager) -> None:
    to_blue = reference(*NAME[1:])
    direct = make_pod("direct", namespace="red", network=to_blue)
    by_nad = make_pod("by-nad", namespace="red", networks="way-in")
    nad = make_nad("way-in", namespace="red", cidr=None, network=to_blue)
    await running.send_list(ISOLATED, nad, direct, by_nad)
    for pod in (direct, by_nad):
        view = await running.view(pod)
        assert (view.state, view.reason) == (PodState.REFUSED, "NetworkForbidden")
        assert view.message == f"network {':'.join(NAME)}: only pods of the isolated namespace blue can use it"


async def test_a_nad_cannot_take_the_name_of_the_network(running: RunningManager) -> None:
    nad = make_nad("blue", cidr="10.9.0.0/24")
    await running.send_list(ISOLATED, nad, make_pod())
    assert await running.reasons(nad) == ["NetworkNameTaken"]
    network = await running.network(NAME[2])
    assert network is not None
    assert network.subnets == (Subnet("10.32.0.0/12", "10.32.0.1"),)


async def test_pods_wait_while_a_nad_has_the_name_of_the_network(running: RunningManager) -> None:
    nad, pod = make_nad("blue", cidr="10.9.0.0/24"), make_pod()
    await running.send_list(nad)
    await running.apply(ISOLATED, pod)
    assert (await running.view(pod)).reason == "NetworkUnusable"
    assert "was created by NAD blue/blue" in ((await running.view(pod)).message or "")
    await running.remove(nad)
    assert (await running.vm(pod)).interfaces[0].network == NAME


async def test_pods_wait_until_the_last_interface_of_a_nad_with_the_name_of_the_network_is_gone(
    running: RunningManager,
) -> None:
    nad, other, pod = make_nad("blue", cidr="10.9.0.0/24"), make_pod("other", networks="blue"), make_pod()
    await running.send_list(nad, other)
    await running.apply(ISOLATED, pod)
    await running.remove(nad)
    assert (await running.view(pod)).reason == "NetworkUnusable"
    await running.remove(other)
    assert (await running.wait_for_vm(pod)).interfaces[0].network == NAME


async def test_the_default_namespace_has_the_cluster_pod_network(running: RunningManager) -> None:
    pod = make_pod(namespace="default")
    await running.send_list(make_namespace("default", isolation="true"), pod)
    assert (await running.vm(pod)).interfaces[0].network == POD_NETWORK
    assert [network.fq_name for network in await running.store.networks()] == [POD_NETWORK]
