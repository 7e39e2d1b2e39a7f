"""The desired state of the datapath, computed from virtual machines and plugged ports."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_api.datapath.desired_state import (
    INSIDE_ONLY,
    Computation,
    DatapathOptions,
    DesiredNetwork,
    Masquerade,
    desired_state,
)
from contrail_config.objects import (
    ForwardingMode,
    FqName,
    InterfaceAddress,
    PodNetwork,
    VirtualMachine,
    VirtualMachineInterface,
    network_uuid,
)
from contrail_config.reserved_macs import GATEWAY_MAC
from tests.support.virtual_machines import make_virtual_machine

FABRIC_SUBNETS = ("10.1.0.0/16", "fd00::/56")
BLUE, RED = ("default-domain", "k8s-shop", "blue"), ("default-domain", "k8s-shop", "red")


def interface_in(network: FqName, number: int, **fields: Any) -> VirtualMachineInterface:
    """The interface of this number in a network with two subnets of one family each."""
    values: dict[str, Any] = {
        "uuid": f"{network[2]}-{number}",
        "mac": f"02:00:00:00:00:{number:02x}",
        "network_uuid": network_uuid(network),
        "network": network,
        "addresses": (
            InterfaceAddress(f"10.1.0.{number}", 24, "10.1.0.1", subnet_gateway="10.1.0.1"),
            InterfaceAddress(f"fd00::{number:x}", 64, "fd00::1", subnet_gateway="fd00::1"),
        ),
        "vni": 5,
    }
    return VirtualMachineInterface(**values | fields)


def make_pod(*interfaces: VirtualMachineInterface) -> VirtualMachine:
    """A pod with the pod network, without a VNI, at index 0."""
    pod = make_virtual_machine()
    return msgspec.structs.replace(pod, interfaces=(*pod.interfaces, *interfaces))


def computed(
    *pods: VirtualMachine, plugged: Mapping[str, str] | None = None, masquerade: Masquerade | None = INSIDE_ONLY
) -> Computation:
    """The state with these host ends by interface uuid."""
    options = DatapathOptions(masquerade, FABRIC_SUBNETS)
    return desired_state(pods, lambda _, interface: (plugged or {}).get(interface.uuid), options)


def only_network(computation: Computation) -> DesiredNetwork:
    (network,) = computation.state.networks
    return network


def test_a_network_exists_with_its_first_virtual_machine_and_a_port_once_it_is_plugged() -> None:
    pods = (make_pod(interface_in(BLUE, 7)), make_pod(interface_in(BLUE, 8)))
    assert only_network(computed(*pods)).ports == ()
    (port,) = only_network(computed(*pods, plugged={"blue-8": "tap8"})).ports
    assert msgspec.to_builtins(port) == {
        "link": "tap8",
        "mac": "02:00:00:00:00:08",
        "addresses": ("10.1.0.8", "fd00::8"),
        "mtu": 1500,
    }


def test_the_keys_of_a_network_are_those_of_the_wire() -> None:
    network = only_network(computed(make_pod(interface_in(BLUE, 7, mtu=1400)), plugged={"blue-7": "tap7"}))
    assert msgspec.json.encode(network) == (
        b'{"vni":5,"mtu":1400,"gateways":["10.1.0.1/24","fd00::1/64"],"snat":false,"forwarding":false,'
        b'"ports":[{"link":"tap7","mac":"02:00:00:00:00:07","addresses":["10.1.0.7","fd00::7"],"mtu":1400}]}'
    )


def test_the_mtu_of_a_network_is_the_lowest_of_its_interfaces_and_the_highest_is_known() -> None:
    pods = (make_pod(interface_in(BLUE, 7, mtu=9000)), make_pod(interface_in(BLUE, 8, mtu=1450)))
    network = only_network(computed(*pods, plugged={"blue-7": "tap7", "blue-8": "tap8"}))
    assert (network.mtu, network.largest_mtu) == (1450, 9000)
    assert [port.mtu for port in network.ports] == [9000, 1450]


def test_one_interface_with_a_fabric_setting_is_enough() -> None:
    pods = (make_pod(interface_in(BLUE, 7, ip_fabric_snat=True)), make_pod(interface_in(BLUE, 8)))
    network = only_network(computed(*pods))
    assert (network.snat, network.forwarding) == (True, False)


def test_a_network_is_routed_if_an_interface_was_assigned_so() -> None:
    pods = [make_pod(interface_in(BLUE, 7)), make_pod(interface_in(BLUE, 8, forwarding_mode=ForwardingMode.L3))]
    assert not only_network(computed(pods[0])).routed
    assert msgspec.to_builtins(only_network(computed(*pods)))["routed"] is True


def test_the_node_does_not_answer_for_a_gateway_that_a_pod_requested() -> None:
    requested = InterfaceAddress("10.1.0.7", 24, "10.1.0.66", subnet_gateway="10.1.0.1")
    without = InterfaceAddress("fd00::7", 64, "fd00::66")
    network = only_network(computed(make_pod(interface_in(BLUE, 7, addresses=(requested, without)))))
    assert network.gateways == ("10.1.0.1/24",)


def test_gateways_of_all_subnets_are_listed_once() -> None:
    other = InterfaceAddress("10.2.0.9", 16, "10.2.0.1", subnet_gateway="10.2.0.1")
    pods = [make_pod(interface_in(BLUE, number)) for number in (7, 8)]
    pods.append(make_pod(interface_in(BLUE, 9, addresses=(other,))))
    assert only_network(computed(*pods)).gateways == ("10.1.0.1/24", "10.2.0.1/16", "fd00::1/64")


def test_an_interface_without_vni_is_not_connected() -> None:
    computation = computed(make_pod(interface_in(BLUE, 7, vni=0)), plugged={"blue-7": "tap7"})
    assert computation.state.networks == ()
    assert refusals(computation) == ["network default-domain:k8s-shop:blue: not connected: it has no VNI yet"]


@pytest.mark.parametrize(("mac", "owner"), [(GATEWAY_MAC, "gateways"), ("0e:00:c0:00:02:02", "nodes")])
def test_an_interface_with_a_reserved_mac_is_not_connected_but_the_others_of_its_network_are(
    mac: str, owner: str
) -> None:
    pods = [make_pod(interface_in(BLUE, 7, mac=mac)), make_pod(interface_in(BLUE, 8))]
    computation = computed(*pods, plugged={"blue-7": "tap7", "blue-8": "tap8"})
    assert [port.link for port in only_network(computation).ports] == ["tap8"]
    (refusal,) = computation.refused
    assert refusal.reason == "reserved-mac"
    reason = f"interface with MAC {mac} is not connected: the MAC is reserved for {owner}"
    assert refusal.message == f"network default-domain:k8s-shop:blue: {reason}"


def test_an_interface_with_a_reserved_mac_does_not_take_index_0_from_other_pods() -> None:
    routed = at_index_0(BLUE, 8, vni=5)
    pods = [make_pod(interface_in(BLUE, 7, mac=GATEWAY_MAC)), routed]
    assert [port.link for port in computed(*pods, plugged={"blue-8": "tap8"}).state.routed] == ["tap8"]


def test_index_0_is_routed_once_it_is_plugged() -> None:
    pod = make_pod(interface_in(BLUE, 7))
    first = pod.interfaces[0]
    assert computed(pod).state.routed == ()
    (port,) = computed(pod, plugged={first.uuid: "tap0"}).state.routed
    assert (port.link, port.mac) == ("tap0", first.mac)
    assert port.addresses == (first.addresses[0].address,)
    assert port.gateways == ("10.47.255.254",)


def test_a_network_at_index_0_is_routed_and_no_network() -> None:
    pod = at_index_0(BLUE, 7)
    computation = computed(pod, plugged={"blue-7": "tap7"})
    assert computation.state.networks == ()
    assert computation.state.routed[0].gateways == ("10.1.0.1", "fd00::1")


def test_a_gateway_that_a_pod_requests_is_no_address_of_the_node() -> None:
    interface = interface_in(BLUE, 7)
    asked = [msgspec.structs.replace(each, gateway="10.1.0.9") for each in interface.addresses if each.family == 4]
    pod = make_virtual_machine(interfaces=(msgspec.structs.replace(interface, addresses=tuple(asked)),))
    assert computed(pod, plugged={"blue-7": "tap7"}).state.routed[0].gateways == ("10.1.0.1",)


def test_the_subnets_of_index_0_and_configured_networks_are_not_outside() -> None:
    pod = make_virtual_machine(interfaces=(interface_in(BLUE, 7),))
    state = computed(pod, masquerade=Masquerade(("192.0.2.0/24",))).state
    assert state.masquerade == Masquerade(("10.1.0.0/24", "192.0.2.0/24", "fd00::/64"))
    assert computed(pod, masquerade=None).state.masquerade is None


def test_two_networks_with_one_vni_are_both_left_out_and_named() -> None:
    pods = (make_pod(interface_in(BLUE, 7)), make_pod(interface_in(RED, 8)), make_pod(interface_in(BLUE, 9, vni=6)))
    computation = computed(*pods, plugged={"blue-7": "tap7", "red-8": "tap8"})
    assert [network.vni for network in computation.state.networks] == [6]
    assert list(computation.names) == [6]
    assert refusals(computation) == [
        "network default-domain:k8s-shop:blue: not connected: VNI 5 is also that of default-domain:k8s-shop:red",
        "network default-domain:k8s-shop:red: not connected: VNI 5 is also that of default-domain:k8s-shop:blue",
    ]


def at_index_0(network: FqName, number: int, **fields: Any) -> VirtualMachine:
    """A pod with only this interface."""
    return make_virtual_machine(f"{network[2]}-{number}", interfaces=(interface_in(network, number, **fields),))


def networks_at_index_0(
    *pods: VirtualMachine, plugged: Collection[str] | None = None
) -> tuple[dict[str, int], list[str]]:
    """Numbers of the networks of the routed ports by link, and all refusals; by default all interfaces are plugged."""
    links = {pod.interfaces[0].uuid: pod.interfaces[0].uuid for pod in pods}
    computation = computed(*pods, plugged={uuid: uuid for uuid in (links if plugged is None else plugged)})
    return {port.link: port.network for port in computation.state.routed}, refusals(computation)


def test_each_network_of_index_0_is_isolated_but_the_clusters() -> None:
    cluster, namespace = PodNetwork.CLUSTER, PodNetwork.NAMESPACE
    other = ("default-domain", "k8s-shop", "other")
    own = InterfaceAddress("10.1.9.4", 24, "10.1.9.1", subnet_gateway="10.1.9.1")
    pods = (
        at_index_0(BLUE, 7, pod_network=cluster),
        at_index_0(RED, 8, pod_network=namespace, vni=6),
        at_index_0(other, 9, vni=7, addresses=(own,)),
    )
    assert networks_at_index_0(*pods) == ({"blue-7": 0, "red-8": 6, "other-9": 7}, [])


@pytest.mark.parametrize("address", ["8.8.8.8", "10.2.0.8", "fd01::8"])
def test_a_network_of_a_tenant_at_index_0_must_be_in_the_subnets_that_the_operator_allows(address: str) -> None:
    gateway = address[:-1] + "1"
    own = InterfaceAddress(address, 64 if ":" in address else 24, gateway, subnet_gateway=gateway)
    routed, (refused,) = networks_at_index_0(at_index_0(BLUE, 7, addresses=(own,)))
    assert routed == {}
    assert "blue: index 0 is not connected: subnet " in refused
    assert refused.endswith("is not in the agent's fabric-subnets")


@pytest.mark.parametrize("kind", [PodNetwork.CLUSTER, PodNetwork.NAMESPACE])
def test_a_network_of_a_tenant_that_overlaps_a_pod_network_is_not_connected(kind: PodNetwork) -> None:
    routed, refused = networks_at_index_0(at_index_0(BLUE, 7, vni=9), at_index_0(RED, 8, pod_network=kind, vni=6))
    assert list(routed) == ["red-8"]
    problem = "index 0 is not connected: subnet 10.1.0.0/24 overlaps 10.1.0.0/24 of network default-domain:k8s-shop:red"
    assert refused == [f"network default-domain:k8s-shop:blue: {problem}"]


def test_of_two_networks_of_tenants_that_overlap_the_one_with_ports_is_connected() -> None:
    pods = at_index_0(BLUE, 7, vni=9), at_index_0(RED, 8, vni=6)
    assert list(networks_at_index_0(*pods, plugged=["blue-7"])[0]) == ["blue-7"]
    assert list(networks_at_index_0(*pods)[0]) == ["red-8"]


def test_index_0_without_gateway_or_number_is_not_connected() -> None:
    without = (InterfaceAddress("10.1.0.7", 24),)
    cluster = at_index_0(BLUE, 7, addresses=without, pod_network=PodNetwork.CLUSTER)
    namespace = at_index_0(RED, 8, vni=0, pod_network=PodNetwork.NAMESPACE)
    routed, refused = networks_at_index_0(cluster, namespace)
    assert routed == {}
    assert sorted(refused) == [
        "network default-domain:k8s-shop:blue: index 0 is not connected: its subnets have no gateway",
        "network default-domain:k8s-shop:red: not connected: it has no VNI yet",
    ]


def refusals(computation: Computation) -> list[str]:
    return [refusal.message for refusal in computation.refused]


@given(st.lists(st.tuples(st.sampled_from([BLUE, RED]), st.booleans()), max_size=6), st.permutations(range(6)))
def test_the_state_does_not_depend_on_the_order_of_virtual_machines(
    wanted: list[tuple[FqName, bool]], order: list[int]
) -> None:
    pods = [
        make_pod(interface_in(network, number, vni=5 if network == BLUE else 6))
        for number, (network, _) in enumerate(wanted)
    ]
    plugged = {
        pod.interfaces[index].uuid: f"tap{number}-{index}"
        for number, (pod, (_, is_plugged)) in enumerate(zip(pods, wanted, strict=True))
        if is_plugged
        for index in (0, 1)
    }
    shuffled = [pods[number] for number in order if number < len(pods)]
    assert computed(*shuffled, plugged=plugged) == computed(*pods, plugged=plugged)
    links = [port.link for network in computed(*pods, plugged=plugged).state.networks for port in network.ports]
    assert sorted(links) == sorted(link for link in plugged.values() if link.endswith("-1"))
