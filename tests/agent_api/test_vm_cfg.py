"""`GET /vm-cfg/<vm-name>`: the vrouter agent's sample response, and our additions."""

from typing import Any

import msgspec

from agent_api.datapath.desired_state import DatapathOptions
from agent_api.datapath.kind import Datapath
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import DefaultGateway, ForwardingMode, InterfaceAddress, PodNetwork, Route, VirtualMachine
from tests.agent_api.conftest import StartAgent, WaitForSync
from tests.support.served_agent import ServedAgent, until
from tests.support.virtual_machines import (
    SAMPLE_VM,
    SAMPLE_VMI,
    SAMPLE_VN,
    left_interface,
    make_virtual_machine,
    pod_interface,
    sample_interface,
)

UPSTREAM_SAMPLE = {
    "id": "159b591c-e57e-11f1-b951-02fc00000001",
    "vm-uuid": "aaaaaaaa-0000-4000-8000-000000000001",
    "vn-id": "773d9c45-2a91-4829-ad2f-7f70a7bb2b67",
    "vn-name": "default-domain:k8s-default:k8s-default-pod-network",
    "mac-address": "02:15:9b:59:1c:e5",
    "sub-interface": False,
    "vlan-id": 65535,
    "annotations": [
        "{kind:Pod}",
        "{owner:k8s}",
        "{cluster:k8s}",
        "{project:k8s-default}",
        "{namespace:default}",
        "{name:p1}",
        "{index:0/3}",
        "{network:default}",
    ],
}

OURS_BESIDE = {
    "ip-address": "10.47.255.251",
    "plen": 12,
    "dns-server": "10.47.255.253",
    "gateway": "10.47.255.254",
    "v6-ip-address": "fd00::5",
    "v6-plen": 64,
    "v6-dns-server": "fd00::2",
    "v6-gateway": "fd00::1",
    "mtu": 1500,
    "routes": [],
}


def sample_virtual_machine() -> VirtualMachine:
    interfaces = (sample_interface(), pod_interface(SAMPLE_VM, 1), left_interface(SAMPLE_VM, 2))
    return make_virtual_machine(uid=SAMPLE_VM, interfaces=interfaces)


async def vm_cfg_of(store: SqliteStore, served: ServedAgent, virtual_machine: VirtualMachine) -> list[dict[str, Any]]:
    await store.put_virtual_machine(virtual_machine)
    async with served.tcp.get(f"/vm-cfg/{virtual_machine.name}?wait=5") as answer:
        assert answer.status == 200
        content: list[dict[str, Any]] = await answer.json()
    return content


async def test_the_sample_response_has_the_vrouter_agents_key_order(store: SqliteStore, served: ServedAgent) -> None:
    first = (await vm_cfg_of(store, served, sample_virtual_machine()))[0]
    assert list(first.items()) == list((UPSTREAM_SAMPLE | OURS_BESIDE).items())


async def test_interfaces_are_in_index_order(store: SqliteStore, served: ServedAgent) -> None:
    indexes = [item["annotations"][6] for item in await vm_cfg_of(store, served, sample_virtual_machine())]
    assert indexes == ["{index:0/3}", "{index:1/3}", "{index:2/3}"]


async def test_annotations_of_the_vrouter_agent_precede_ours(store: SqliteStore, served: ServedAgent) -> None:
    last = (await vm_cfg_of(store, served, sample_virtual_machine()))[2]
    assert last["annotations"][7:] == [
        "{network:left}",
        "{interface:left}",
        "{nad:default/left}",
        "{config-name:left}",
        "{attachment:left}",
    ]


async def test_the_network_of_index_0_is_default_even_with_a_nad(store: SqliteStore, served: ServedAgent) -> None:
    chosen = msgspec.structs.replace(sample_interface(), nad="other/blue", default_gw=DefaultGateway.IPV6)
    (item,) = await vm_cfg_of(store, served, make_virtual_machine(interfaces=(chosen,)))
    assert item["annotations"][6:] == ["{index:0/1}", "{network:default}", "{nad:other/blue}", "{default-gw:ipv6}"]


async def test_a_family_without_address_has_no_keys(store: SqliteStore, served: ServedAgent) -> None:
    only_v6 = msgspec.structs.replace(
        sample_interface(), addresses=(InterfaceAddress("fd00::7", 112, gateway="fd00::1", dns=("fd00::2",)),)
    )
    (item,) = await vm_cfg_of(store, served, make_virtual_machine(interfaces=(only_v6,)))
    address_keys = list(item)[8:]
    assert address_keys == ["v6-ip-address", "v6-plen", "v6-dns-server", "v6-gateway", "mtu", "routes"]


async def test_dns_server_defaults_to_unspecified_and_gateway_is_optional(
    store: SqliteStore, served: ServedAgent
) -> None:
    bare = msgspec.structs.replace(
        sample_interface(), addresses=(InterfaceAddress("10.1.1.5", 24), InterfaceAddress("fd00::7", 64))
    )
    (item,) = await vm_cfg_of(store, served, make_virtual_machine(interfaces=(bare,)))
    assert (item["dns-server"], item["v6-dns-server"]) == ("0.0.0.0", "::")
    assert not {"gateway", "v6-gateway"} & set(item)


async def test_only_the_first_dns_server_of_a_family_is_served(store: SqliteStore, served: ServedAgent) -> None:
    two = msgspec.structs.replace(
        sample_interface(), addresses=(InterfaceAddress("10.1.1.5", 24, dns=("10.0.0.1", "10.0.0.2")),)
    )
    (item,) = await vm_cfg_of(store, served, make_virtual_machine(interfaces=(two,)))
    assert item["dns-server"] == "10.0.0.1"


async def test_mtu_and_routes_are_those_of_the_network(store: SqliteStore, served: ServedAgent) -> None:
    routed = msgspec.structs.replace(
        sample_interface(), mtu=9000, routes=(Route("10.9.0.0/16", "10.47.255.254"), Route("fd00:9::/64"))
    )
    (item,) = await vm_cfg_of(store, served, make_virtual_machine(interfaces=(routed,)))
    assert item["mtu"] == 9000
    assert item["routes"] == [{"dst": "10.9.0.0/16", "gw": "10.47.255.254"}, {"dst": "fd00:9::/64"}]


def networked_virtual_machine() -> VirtualMachine:
    """A pod with the pod network, a network with a VNI and one without."""
    interfaces = (
        msgspec.structs.replace(sample_interface(), vni=4),
        msgspec.structs.replace(left_interface(SAMPLE_VM, 1), vni=5),
        left_interface(SAMPLE_VM, 2),
    )
    return make_virtual_machine(uid=SAMPLE_VM, interfaces=interfaces)


async def test_with_a_linux_datapath_items_end_with_the_place_of_the_host_end(
    store: SqliteStore, start_agent: StartAgent
) -> None:
    served = await start_agent(datapath=Datapath.LINUX)
    first, second, third = await vm_cfg_of(store, served, networked_virtual_machine())
    assert list(first.items())[-2:] == [("routes", []), ("routed", ["10.47.255.254", "fd00::1"])]
    assert list(second.items())[-3:] == [("routes", []), ("network-namespace", "contrail-5"), ("bridge", "br0")]
    name = "default-domain:k8s-default:k8s-left-pod-network"
    assert list(third.items())[-2:] == [
        ("routes", []),
        ("refused", f"network {name}: not connected: it has no VNI yet"),
    ]


async def test_an_interface_with_a_reserved_mac_is_refused_and_the_others_are_not(
    store: SqliteStore, start_agent: StartAgent
) -> None:
    served = await start_agent(datapath=Datapath.LINUX)
    first, second, _ = networked_virtual_machine().interfaces
    reserved = msgspec.structs.replace(second, mac="0e:00:c0:00:02:02")
    machine = make_virtual_machine(uid=SAMPLE_VM, interfaces=(first, reserved))
    index_0, index_1 = await vm_cfg_of(store, served, machine)
    assert index_0["routed"]
    assert index_1["refused"].endswith(
        "interface with MAC 0e:00:c0:00:02:02 is not connected: the MAC is reserved for nodes"
    )


async def test_a_routed_network_names_the_gateways_of_its_subnets(store: SqliteStore, start_agent: StartAgent) -> None:
    served = await start_agent(datapath=Datapath.LINUX)
    address = InterfaceAddress("10.1.0.5", 24, gateway="10.1.0.66", subnet_gateway="10.1.0.1")
    routed = msgspec.structs.replace(
        left_interface(SAMPLE_VM, 1), vni=5, addresses=(address,), forwarding_mode=ForwardingMode.L3
    )
    machine = make_virtual_machine(uid=SAMPLE_VM, interfaces=(sample_interface(), routed))
    _, item = await vm_cfg_of(store, served, machine)
    assert item["gateway"] == "10.1.0.66"
    assert list(item.items())[-3:] == [("network-namespace", "contrail-5"), ("bridge", "br0"), ("routed", ["10.1.0.1"])]


async def test_index_0_of_an_isolated_namespace_names_its_network(store: SqliteStore, start_agent: StartAgent) -> None:
    served = await start_agent(datapath=Datapath.LINUX, options=DatapathOptions(masquerade=None))
    interface = msgspec.structs.replace(sample_interface(), pod_network=PodNetwork.NAMESPACE, vni=9)
    (item,) = await vm_cfg_of(store, served, make_virtual_machine(uid=SAMPLE_VM, interfaces=(interface,)))
    assert list(item.items())[-2:] == [("routed", ["10.47.255.254", "fd00::1"]), ("isolated-network", 9)]


async def test_a_network_of_a_tenant_at_index_0_is_refused_as_long_as_it_overlaps(
    store: SqliteStore, start_agent: StartAgent
) -> None:
    options = DatapathOptions(fabric_subnets=("10.32.0.0/12", "fd00::/64"))
    served = await start_agent(datapath=Datapath.LINUX, options=options)
    custom = msgspec.structs.replace(
        sample_interface(), network=("a", "b", "c"), network_uuid=SAMPLE_VM, pod_network=None, vni=9
    )
    pod = make_virtual_machine(uid=SAMPLE_VM, interfaces=(custom,))
    other = make_virtual_machine("other")
    await store.put_virtual_machine(other)
    (item,) = await vm_cfg_of(store, served, pod)
    assert item["refused"].startswith(
        "network a:b:c: index 0 is not connected: subnet 10.32.0.0/12 overlaps 10.32.0.0/12"
    )
    assert "routed" not in item
    await store.delete_virtual_machine(other.uuid)
    await until(lambda: served.agent.virtual_machines.by_uuid(other.uuid) is None)
    async with served.unix.get(f"/vm-cfg/{pod.name}") as answer:
        (item,) = await answer.json()
    assert item["isolated-network"] == 9


async def test_without_a_datapath_items_do_not_depend_on_the_vni(store: SqliteStore, start_agent: StartAgent) -> None:
    served = await start_agent(datapath=Datapath.NONE)
    with_vni = networked_virtual_machine()
    interfaces = tuple(msgspec.structs.replace(each, vni=0) for each in with_vni.interfaces)
    without = msgspec.structs.replace(with_vni, interfaces=interfaces)
    assert await vm_cfg_of(store, served, with_vni) == await vm_cfg_of(store, served, without)


async def test_the_content_type_is_that_of_the_vrouter_agent(store: SqliteStore, served: ServedAgent) -> None:
    await vm_cfg_of(store, served, sample_virtual_machine())
    for path in ("/vm-cfg/k8s__default__p1", "/vm-cfg/k8s__default__nobody", "/elsewhere"):
        async with served.tcp.get(path) as answer:
            assert answer.headers["Content-Type"] == "application/json; charset=UTF-8"


async def test_an_unknown_name_is_the_vrouter_agents_404(served: ServedAgent) -> None:
    for name in ("k8s__default__p1", "", "a/b", "%2e%2e%2f%2e%2e", "%00", "x" * 4000):
        async with served.tcp.get(f"/vm-cfg/{name}") as answer:
            assert (answer.status, await answer.json()) == (404, {"error": "{ Not Found }"}), name


async def test_a_virtual_machine_without_interfaces_is_not_found(
    store: SqliteStore, served: ServedAgent, wait_for_sync: WaitForSync
) -> None:
    virtual_machine = make_virtual_machine(interfaces=())
    await store.put_virtual_machine(virtual_machine)
    await wait_for_sync()
    async with served.tcp.get(f"/vm-cfg/{virtual_machine.name}") as answer:
        assert answer.status == 404


async def test_a_changed_virtual_machine_is_served_with_its_changes(
    store: SqliteStore, served: ServedAgent, wait_for_sync: WaitForSync
) -> None:
    virtual_machine = sample_virtual_machine()
    assert len(await vm_cfg_of(store, served, virtual_machine)) == 3
    await store.put_virtual_machine(msgspec.structs.replace(virtual_machine, interfaces=virtual_machine.interfaces[:1]))
    await wait_for_sync()
    async with served.tcp.get(f"/vm-cfg/{virtual_machine.name}") as answer:
        (item,) = await answer.json()
    assert item["annotations"][6] == "{index:0/1}"


async def test_a_deleted_virtual_machine_is_not_found(
    store: SqliteStore, served: ServedAgent, wait_for_sync: WaitForSync
) -> None:
    virtual_machine = sample_virtual_machine()
    await vm_cfg_of(store, served, virtual_machine)
    await store.delete_virtual_machine(virtual_machine.uuid)
    await wait_for_sync()
    async with served.tcp.get(f"/vm-cfg/{virtual_machine.name}") as answer:
        assert answer.status == 404


async def test_a_virtual_machine_of_another_node_is_not_found(
    store: SqliteStore, served: ServedAgent, wait_for_sync: WaitForSync
) -> None:
    virtual_machine = make_virtual_machine(node="worker-2")
    await store.put_virtual_machine(virtual_machine)
    await wait_for_sync()
    async with served.tcp.get(f"/vm-cfg/{virtual_machine.name}") as answer:
        assert answer.status == 404


def test_the_sample_matches_the_test_builders() -> None:
    virtual_machine = sample_virtual_machine()
    assert (virtual_machine.uuid, virtual_machine.interfaces[0].uuid) == (UPSTREAM_SAMPLE["vm-uuid"], SAMPLE_VMI)
    assert virtual_machine.interfaces[0].network_uuid == SAMPLE_VN
