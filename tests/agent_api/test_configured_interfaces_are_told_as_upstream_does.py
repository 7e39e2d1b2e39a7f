"""`GET /vm-cfg/<vm-name>`: upstream's sample, and what stands beside it."""

from typing import Any

import msgspec

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import DefaultGateway, InterfaceAddress, Route, VirtualMachine
from tests.agent_api.conftest import Settle
from tests.support.agent import ServedAgent
from tests.support.machines import (
    SAMPLE_VM,
    SAMPLE_VMI,
    SAMPLE_VN,
    left_interface,
    make_machine,
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


def sample_machine() -> VirtualMachine:
    interfaces = (sample_interface(), pod_interface(SAMPLE_VM, 1), left_interface(SAMPLE_VM, 2))
    return make_machine(uid=SAMPLE_VM, interfaces=interfaces)


async def answered(store: SqliteStore, served: ServedAgent, machine: VirtualMachine) -> list[dict[str, Any]]:
    await store.put_virtual_machine(machine)
    async with served.tcp.get(f"/vm-cfg/{machine.name}?wait=5") as answer:
        assert answer.status == 200
        content: list[dict[str, Any]] = await answer.json()
    return content


async def test_the_sample_is_answered_key_by_key_in_upstreams_order(store: SqliteStore, served: ServedAgent) -> None:
    first = (await answered(store, served, sample_machine()))[0]
    assert list(first.items()) == list((UPSTREAM_SAMPLE | OURS_BESIDE).items())


async def test_interfaces_come_in_index_order_whatever_their_uuids(store: SqliteStore, served: ServedAgent) -> None:
    indexes = [item["annotations"][6] for item in await answered(store, served, sample_machine())]
    assert indexes == ["{index:0/3}", "{index:1/3}", "{index:2/3}"]


async def test_an_attachment_tells_upstreams_annotations_first_and_ours_after_them(
    store: SqliteStore, served: ServedAgent
) -> None:
    last = (await answered(store, served, sample_machine()))[2]
    assert last["annotations"][7:] == [
        "{network:left}",
        "{interface:left}",
        "{nad:default/left}",
        "{config-name:left}",
        "{attachment:left}",
    ]


async def test_a_network_chosen_by_a_nad_is_default_at_index_0_and_names_its_nad(
    store: SqliteStore, served: ServedAgent
) -> None:
    chosen = msgspec.structs.replace(sample_interface(), nad="other/blue", default_gw=DefaultGateway.IPV6)
    (item,) = await answered(store, served, make_machine(interfaces=(chosen,)))
    assert item["annotations"][6:] == ["{index:0/1}", "{network:default}", "{nad:other/blue}", "{default-gw:ipv6}"]


async def test_a_family_without_address_has_no_keys(store: SqliteStore, served: ServedAgent) -> None:
    only_v6 = msgspec.structs.replace(
        sample_interface(), addresses=(InterfaceAddress("fd00::7", 112, gateway="fd00::1", dns=("fd00::2",)),)
    )
    (item,) = await answered(store, served, make_machine(interfaces=(only_v6,)))
    address_keys = list(item)[8:]
    assert address_keys == ["v6-ip-address", "v6-plen", "v6-dns-server", "v6-gateway", "mtu", "routes"]


async def test_without_dns_server_it_is_the_unspecified_address_and_without_gateway_there_is_no_key(
    store: SqliteStore, served: ServedAgent
) -> None:
    bare = msgspec.structs.replace(
        sample_interface(), addresses=(InterfaceAddress("10.1.1.5", 24), InterfaceAddress("fd00::7", 64))
    )
    (item,) = await answered(store, served, make_machine(interfaces=(bare,)))
    assert (item["dns-server"], item["v6-dns-server"]) == ("0.0.0.0", "::")
    assert not {"gateway", "v6-gateway"} & set(item)


async def test_only_the_first_dns_server_of_a_family_is_told(store: SqliteStore, served: ServedAgent) -> None:
    two = msgspec.structs.replace(
        sample_interface(), addresses=(InterfaceAddress("10.1.1.5", 24, dns=("10.0.0.1", "10.0.0.2")),)
    )
    (item,) = await answered(store, served, make_machine(interfaces=(two,)))
    assert item["dns-server"] == "10.0.0.1"


async def test_mtu_and_routes_are_those_of_the_network(store: SqliteStore, served: ServedAgent) -> None:
    routed = msgspec.structs.replace(
        sample_interface(), mtu=9000, routes=(Route("10.9.0.0/16", "10.47.255.254"), Route("fd00:9::/64"))
    )
    (item,) = await answered(store, served, make_machine(interfaces=(routed,)))
    assert item["mtu"] == 9000
    assert item["routes"] == [{"dst": "10.9.0.0/16", "gw": "10.47.255.254"}, {"dst": "fd00:9::/64"}]


async def test_the_answer_says_that_it_is_json_as_upstream_says_it(store: SqliteStore, served: ServedAgent) -> None:
    await answered(store, served, sample_machine())
    for path in ("/vm-cfg/k8s__default__p1", "/vm-cfg/k8s__default__nobody", "/elsewhere"):
        async with served.tcp.get(path) as answer:
            assert answer.headers["Content-Type"] == "application/json; charset=UTF-8"


async def test_a_name_that_is_not_there_is_upstreams_404(served: ServedAgent) -> None:
    for name in ("k8s__default__p1", "", "a/b", "%2e%2e%2f%2e%2e", "%00", "x" * 4000):
        async with served.tcp.get(f"/vm-cfg/{name}") as answer:
            assert (answer.status, await answer.json()) == (404, {"error": "{ Not Found }"}), name


async def test_a_machine_without_interfaces_is_not_there_yet(
    store: SqliteStore, served: ServedAgent, settle: Settle
) -> None:
    machine = make_machine(interfaces=())
    await store.put_virtual_machine(machine)
    await settle()
    async with served.tcp.get(f"/vm-cfg/{machine.name}") as answer:
        assert answer.status == 404


async def test_a_machine_that_changes_is_answered_as_it_is_then(
    store: SqliteStore, served: ServedAgent, settle: Settle
) -> None:
    machine = sample_machine()
    assert len(await answered(store, served, machine)) == 3
    await store.put_virtual_machine(msgspec.structs.replace(machine, interfaces=machine.interfaces[:1]))
    await settle()
    async with served.tcp.get(f"/vm-cfg/{machine.name}") as answer:
        (item,) = await answer.json()
    assert item["annotations"][6] == "{index:0/1}"


async def test_a_deleted_machine_is_not_answered_any_more(
    store: SqliteStore, served: ServedAgent, settle: Settle
) -> None:
    machine = sample_machine()
    await answered(store, served, machine)
    await store.delete_virtual_machine(machine.uuid)
    await settle()
    async with served.tcp.get(f"/vm-cfg/{machine.name}") as answer:
        assert answer.status == 404


async def test_a_machine_of_another_node_is_not_answered(
    store: SqliteStore, served: ServedAgent, settle: Settle
) -> None:
    machine = make_machine(node="worker-2")
    await store.put_virtual_machine(machine)
    await settle()
    async with served.tcp.get(f"/vm-cfg/{machine.name}") as answer:
        assert answer.status == 404


def test_the_sample_is_that_of_the_builders() -> None:
    machine = sample_machine()
    assert (machine.uuid, machine.interfaces[0].uuid) == (UPSTREAM_SAMPLE["vm-uuid"], SAMPLE_VMI)
    assert machine.interfaces[0].network_uuid == SAMPLE_VN
