"""A virtual machine has its identity, the interfaces in order, and the settings of their subnets and networks."""

import msgspec

from contrail_config.objects import Pending, Route, interface_mac, interface_uuid
from manager.configuration import (
    ManagerConfiguration,
    MetaPlugin,
    MetaPluginSettings,
    PodNetworkSettings,
    RouteSettings,
)
from manager.mapping.interface_names import sandbox_names
from manager.mapping.interface_resolution import resolve_interfaces
from manager.mapping.virtual_machine import (
    build_pending_virtual_machine,
    build_virtual_machine,
    summarize_virtual_machine,
)
from manager.reasons import Reason
from tests.support.catalogues import build, make_catalogue
from tests.support.pods import make_nad, make_pod

ROUTED = '{"type": "contrail-k8s-cni", "mtu": 9000, "routes": [{"dst": "192.168.0.0/16", "gw": "10.1.0.1"}]}'
NET_A = make_nad("net-a", cidr="10.1.0.0/16,fd00:1::/64", config=ROUTED)


def test_the_virtual_machine_has_the_identity_of_the_pod() -> None:
    pod = make_pod("web-0", networks="net-a")
    machine = build(pod, NET_A)
    assert machine.uuid == pod.uid
    assert machine.name == "k8s__blue__web-0"
    assert (machine.cluster, machine.project) == ("k8s", "k8s-blue")
    assert (machine.namespace, machine.pod, machine.node) == ("blue", "web-0", "node-1")


def test_uuids_and_macs_of_interfaces_are_stable() -> None:
    pod = make_pod(networks="net-a,net-a")
    machine = build(pod, NET_A)
    uuids = [interface_uuid(pod.uid, index) for index in range(3)]
    assert [interface.uuid for interface in machine.interfaces] == uuids
    assert [interface.mac for interface in machine.interfaces] == [interface_mac(uuid) for uuid in uuids]


def test_each_interface_has_an_address_of_each_family_ipv4_first() -> None:
    (_, interface) = build(make_pod(networks="net-a"), NET_A).interfaces
    ipv4, ipv6 = interface.addresses
    assert (ipv4.family, ipv4.prefix_length, ipv4.gateway) == (4, 16, "10.1.0.1")
    assert (ipv6.family, ipv6.prefix_length, ipv6.gateway) == (6, 64, "fd00:1::1")


def test_mtu_and_routes_come_from_the_network() -> None:
    settings = PodNetworkSettings(mtu=1400, routes=(RouteSettings(dst="172.16.0.0/12", gw="10.32.0.9"),))
    configuration = ManagerConfiguration(pod_network=settings)
    primary, secondary = build(make_pod(networks="net-a"), NET_A, configuration=configuration).interfaces
    assert (primary.mtu, primary.routes) == (1400, (Route("172.16.0.0/12", "10.32.0.9"),))
    assert (secondary.mtu, secondary.routes) == (9000, (Route("192.168.0.0/16", "10.1.0.1"),))


def test_each_interface_has_the_vni_and_the_fabric_settings_of_its_network() -> None:
    pod, catalogue = make_pod(networks="net-a,net-b"), make_catalogue(NET_A, make_nad("net-b"))
    for vni, (name, network) in enumerate(catalogue.networks.items(), start=5):
        catalogue.networks[name] = msgspec.structs.replace(network, vni=vni, ip_fabric_snat=vni == 7)
    resolved = resolve_interfaces(pod, catalogue=catalogue, configuration=ManagerConfiguration())
    machine = build_virtual_machine(pod, resolved.interfaces, (), cluster="k8s", default_mtu=1500)
    assert [interface.vni for interface in machine.interfaces] == [5, 6, 7]
    assert [interface.ip_fabric_snat for interface in machine.interfaces] == [False, False, True]
    assert not any(interface.ip_fabric_forwarding for interface in machine.interfaces)


def test_each_interface_has_the_forwarding_mode_of_its_network() -> None:
    pod, catalogue = make_pod(networks="net-a,net-b"), make_catalogue(NET_A, make_nad("net-b", forwarding_mode="l3"))
    resolved = resolve_interfaces(pod, catalogue=catalogue, configuration=ManagerConfiguration())
    machine = build_virtual_machine(pod, resolved.interfaces, (), cluster="k8s", default_mtu=1500)
    assert [str(interface.forwarding_mode) for interface in machine.interfaces] == ["l3", "l2_l3", "l3"]


def test_the_subnets_gateway_is_kept_beside_a_requested_one() -> None:
    pod = make_pod(networks='[{"name": "net-a", "default-route": ["10.1.7.7"]}]')
    ipv4, ipv6 = build(pod, NET_A).interfaces[1].addresses
    assert (ipv4.gateway, ipv4.subnet_gateway) == ("10.1.7.7", "10.1.0.1")
    assert (ipv6.gateway, ipv6.subnet_gateway) == ("fd00:1::1", "fd00:1::1")


def test_the_default_mtu_is_that_of_the_pod_network() -> None:
    configuration = ManagerConfiguration(pod_network=PodNetworkSettings(mtu=1400))
    (_, interface) = build(make_pod(networks="net-b"), make_nad("net-b"), configuration=configuration).interfaces
    assert interface.mtu == 1400


def test_all_names_contain_the_cluster_name() -> None:
    configuration = ManagerConfiguration(cluster_name="prod")
    machine = build(make_pod(networks="net-a"), NET_A, configuration=configuration)
    assert (machine.name, machine.project) == ("prod__blue__web-0", "prod-blue")
    assert machine.interfaces[0].network == ("default-domain", "prod-default", "prod-default-pod-network")
    assert machine.interfaces[1].network == ("default-domain", "prod-blue", "prod-net-a-pod-network")


def test_a_pending_virtual_machine_has_the_identity_of_the_pod_and_no_interfaces() -> None:
    pod = make_pod("web-0", networks="net-a", config_hash="f00d")
    pending = build_pending_virtual_machine(pod, Reason.NETWORK_NOT_FOUND, "no such network", cluster="k8s")
    assert pending.pending == Pending("NetworkNotFound", "no such network")
    assert msgspec.structs.replace(pending, pending=None) == msgspec.structs.replace(build(pod, NET_A), interfaces=())


def test_the_message_of_a_pending_virtual_machine_is_cut() -> None:
    pending = build_pending_virtual_machine(make_pod(), Reason.ANNOTATION_INVALID, "x" * 100_000, cluster="k8s").pending
    assert pending is not None
    assert pending.message == "x" * 511 + "…"


def test_a_virtual_machine_is_summarized_in_one_line() -> None:
    machine = build(make_pod(networks="net-a@left,net-a"), NET_A)
    assert summarize_virtual_machine(machine, sandbox_names(machine.interfaces, MetaPluginSettings())) == (
        "eth0 10.32.0.2 (k8s-default-pod-network), "
        "left 10.1.0.2 fd00:1::2 (blue/net-a), eth2 10.1.0.3 fd00:1::3 (blue/net-a)"
    )


def test_multus_names_the_interfaces_over_all_attachments() -> None:
    settings = MetaPluginSettings(kind=MetaPlugin.MULTUS)
    pod = make_pod(networks="net-a,other,net-a@left,net-a")
    foreign = make_nad("other", config='{"type": "macvlan"}')
    machine = build(pod, NET_A, foreign, configuration=ManagerConfiguration(meta_plugin=settings))
    assert sandbox_names(machine.interfaces, settings) == ("eth0", "net1", "left", "net4")
    assert sandbox_names(machine.interfaces, MetaPluginSettings()) == ("eth0", "eth1", "left", "eth3")
