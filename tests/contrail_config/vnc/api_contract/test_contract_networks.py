"""Virtual networks: numbers, subnets, and what may change."""

import pytest

from tests.support.contrail_callers import Caller, Made, Object, subnet, unique


async def subnets_of(api: Caller, network: Made) -> list[Object]:
    (link,) = (await api.read(network))["network_ipam_refs"]
    return list(link["attr"]["ipam_subnets"])


async def put_subnets(api: Caller, network: Made, *subnets: Object) -> tuple[int, str]:
    (link,) = (await api.read(network))["network_ipam_refs"]
    changed = {"to": link["to"], "uuid": link["uuid"], "attr": {"ipam_subnets": list(subnets)}}
    answer = await api.put(network, network_ipam_refs=[changed])
    return answer.status, answer.text


async def test_each_network_has_a_number_of_its_own(api: Caller) -> None:
    networks = [await api.read(await api.network()) for _ in range(3)]
    assert len({network["virtual_network_network_id"] for network in networks}) == 3


async def test_the_lowest_free_number_is_assigned(api: Caller) -> None:
    network = await api.network()
    number = (await api.read(network))["virtual_network_network_id"]
    await api.delete(network)
    assert (await api.read(await api.network()))["virtual_network_network_id"] == number


async def test_the_number_cannot_be_requested(api: Caller) -> None:
    project = await api.project()
    answer = await api.try_create(
        "virtual-network", fq_name=[*project.fq_name, "n"], parent_type="project", virtual_network_network_id=7
    )
    assert (answer.status, answer.text) == (403, "Cannot set the virtual network ID")


async def test_a_vxlan_id_belongs_to_one_network(api: Caller) -> None:
    wanted: Object = {"virtual_network_properties": {"vxlan_network_identifier": 16_000_001}}
    await api.network(**wanted)
    project = await api.project()
    answer = await api.try_create("virtual-network", fq_name=[*project.fq_name, "n"], parent_type="project", **wanted)
    assert (answer.status, answer.text) == (400, "Cannot set VXLAN_ID: 16000001, it has already been set")


async def test_a_network_has_a_routing_instance_of_its_name(api: Caller) -> None:
    network = await api.network()
    (instance,) = (await api.read(network))["routing_instances"]
    assert instance["to"] == [*network.fq_name, network.fq_name[-1]]


@pytest.mark.parametrize(
    ("ascending", "gateway", "dns"), [(True, "10.8.0.1", "10.8.0.2"), (False, "10.8.0.254", "10.8.0.253")]
)
async def test_a_subnet_gets_a_gateway_and_a_dns_server(api: Caller, ascending: bool, gateway: str, dns: str) -> None:
    network = await api.network(subnet("10.8.0.0/24", addr_from_start=ascending))
    (stored,) = await subnets_of(api, network)
    assert (stored["default_gateway"], stored["dns_server_address"]) == (gateway, dns)
    assert stored["subnet_uuid"]


async def test_host_bits_of_a_subnet_are_cut(api: Caller) -> None:
    (stored,) = await subnets_of(api, await api.network(subnet("10.8.0.1/24")))
    assert stored["subnet"] == {"ip_prefix": "10.8.0.0", "ip_prefix_len": 24}


@pytest.mark.parametrize(
    ("subnets", "status", "text"),
    [
        ([subnet("10.8.0.0/24"), subnet("10.8.0.128/25")], 400, "Overlapping addresses: ["),
        ([subnet("10.8.0.0/33")], 400, "Subnet type '10.8.0.0/33' is invalid"),
        ([subnet("10.8.0.0/31")], 500, "has invalid alloc_unit(1) in subnet("),
        ([subnet("10.8.0.1/32")], 500, "reason: Pool range<=block_alloc_unit"),
        ([subnet("fd00::/127")], 500, "has invalid alloc_unit(1) in subnet("),
        ([subnet("fd00::/128")], 500, "has invalid alloc_unit(1) in subnet("),
        ([subnet("10.8.0.0/24", default_gateway="10.9.0.1")], 409, "gateway Ip 10.9.0.1 out of cidr: 10.8.0.0/24"),
        ([subnet("10.8.0.0/24", default_gateway="x")], 409, "Invalid gateway Ip address:x"),
    ],
)
async def test_a_subnet_that_cannot_be_is_refused(api: Caller, subnets: list[Object], status: int, text: str) -> None:
    project = await api.project()
    ipam = await api.create("network-ipam", fq_name=[*project.fq_name, "ipam"], parent_type="project")
    answer = await api.try_create(
        "virtual-network",
        fq_name=[*project.fq_name, "n"],
        parent_type="project",
        network_ipam_refs=[{**ipam.reference, "attr": {"ipam_subnets": subnets}}],
    )
    assert answer.status == status, answer
    assert text in answer.text


async def test_a_link_needs_attributes(api: Caller) -> None:
    project = await api.project()
    ipam = await api.create("network-ipam", fq_name=[*project.fq_name, "ipam"], parent_type="project")
    answer = await api.try_create(
        "virtual-network", fq_name=[*project.fq_name, "n"], parent_type="project", network_ipam_refs=[ipam.reference]
    )
    assert answer.status == 400


async def test_a_missing_ipam_is_an_unknown_reference(api: Caller) -> None:
    project = await api.project()
    answer = await api.try_create(
        "virtual-network",
        fq_name=[*project.fq_name, "n"],
        parent_type="project",
        network_ipam_refs=[{"to": [*project.fq_name, unique("ipam")], "attr": {"ipam_subnets": []}}],
    )
    assert answer.status == 400
    assert answer.text.startswith("Unknown reference in resource create {")


@pytest.mark.parametrize("mtu", [0, 1450, 9216])
async def test_an_mtu_up_to_9216_is_stored(api: Caller, mtu: int) -> None:
    assert (await api.read(await api.network(mtu=mtu)))["mtu"] == mtu


async def test_an_mtu_above_9216_is_refused(api: Caller) -> None:
    project = await api.project()
    answer = await api.try_create("virtual-network", fq_name=[*project.fq_name, "n"], parent_type="project", mtu=9217)
    assert answer.status == 400


async def test_a_subnet_can_be_added(api: Caller) -> None:
    network = await api.network(subnet("10.8.0.0/24"))
    await api.address(network)
    before = await subnets_of(api, network)
    assert (await put_subnets(api, network, *before, subnet("10.9.0.0/24")))[0] == 200
    assert len(await subnets_of(api, network)) == 2


async def test_equal_subnets_can_be_written_again(api: Caller) -> None:
    network = await api.network(subnet("10.8.0.0/24"), subnet("fd00::/64"))
    await api.address(network)
    before = await subnets_of(api, network)
    assert (await put_subnets(api, network, *before))[0] == 200
    assert await subnets_of(api, network) == before


async def test_addresses_follow_the_order_of_subnets_when_that_changes(api: Caller) -> None:
    network = await api.network(subnet("10.8.0.0/24"), subnet("10.9.0.0/24"))
    await api.address(network)
    first, second = await subnets_of(api, network)
    assert (await put_subnets(api, network, second, first))[0] == 200
    assert await api.address_of(await api.address(network)) == "10.9.0.3"


async def test_a_subnet_with_addresses_cannot_get_another_length(api: Caller) -> None:
    network = await api.network(subnet("10.8.0.0/24", default_gateway="10.8.0.1"))
    address = await api.address_of(await api.address(network))
    (stored,) = await subnets_of(api, network)
    longer = {**stored, "subnet": {"ip_prefix": "10.8.0.0", "ip_prefix_len": 25}}
    assert await put_subnets(api, network, longer) == (409, f"Cannot Delete IP Block, IP({address}) is in use")


async def test_a_subnet_with_addresses_cannot_be_removed(api: Caller) -> None:
    network = await api.network(subnet("10.8.0.0/24"), subnet("10.9.0.0/24"))
    address = await api.address_of(await api.address(network))
    _, second = await subnets_of(api, network)
    assert await put_subnets(api, network, second) == (409, f"Cannot Delete IP Block, IP({address}) is in use")


async def test_a_subnet_without_addresses_can_be_removed(api: Caller) -> None:
    network = await api.network(subnet("10.8.0.0/24"), subnet("10.9.0.0/24"))
    _, second = await subnets_of(api, network)
    assert (await put_subnets(api, network, second))[0] == 200


@pytest.mark.parametrize(
    ("before", "after"), [("10.8.0.1", "10.8.0.9"), ("10.8.0.1", "0.0.0.0"), ("0.0.0.0", "10.8.0.1")]
)
async def test_the_gateway_of_a_subnet_cannot_change(api: Caller, before: str, after: str) -> None:
    network = await api.network(subnet("10.8.0.0/24", default_gateway=before))
    (stored,) = await subnets_of(api, network)
    status, _ = await put_subnets(api, network, {**stored, "default_gateway": after})
    assert status == 500
