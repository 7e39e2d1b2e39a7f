"""Instance-ips: which address each gets, and which are refused."""

import uuid

import pytest

from tests.support.contrail_callers import Caller, Made, Object, annotations, statuses, subnet, unique

TINY = subnet("10.8.0.0/30", default_gateway="10.8.0.1", dns_server_address="10.8.0.1")
SMALL = subnet("10.8.0.0/29", default_gateway="10.8.0.1", dns_server_address="10.8.0.2")
NO_GATEWAY = subnet("10.8.0.0/29", default_gateway="0.0.0.0", dns_server_address="0.0.0.0")
SIX_WITHOUT_GATEWAY = subnet("fd00:10::/64", default_gateway="::", dns_server_address="::")
TINY_SIX = subnet("fd00:10::/126", default_gateway="fd00:10::1", dns_server_address="fd00:10::1")
LARGE = subnet("10.0.0.0/12", default_gateway="10.0.0.1", dns_server_address="10.0.0.1")
SIX = subnet("fd00:10::/64", default_gateway="fd00:10::1", dns_server_address="fd00:10::1")


async def test_the_reply_to_a_create_has_no_address(api: Caller) -> None:
    answer = await api.try_address(await api.network(SMALL))
    assert set(answer.json["instance-ip"]) == {"name", "fq_name", "uuid", "href"}


async def test_addresses_ascend_and_leave_out_the_reserved_ones(api: Caller) -> None:
    network = await api.network(SMALL)
    given = [await api.address_of(await api.address(network)) for _ in range(3)]
    assert given == ["10.8.0.3", "10.8.0.4", "10.8.0.5"]


async def test_addresses_descend_by_default(api: Caller) -> None:
    network = await api.network(subnet("10.8.0.0/24", addr_from_start=False))
    given = [await api.address_of(await api.address(network)) for _ in range(2)]
    assert given == ["10.8.0.252", "10.8.0.251"]


async def test_a_freed_address_is_given_again_at_once(api: Caller) -> None:
    network = await api.network(SMALL)
    first = await api.address(network)
    address = await api.address_of(first)
    await api.delete(first)
    assert await api.address_of(await api.address(network)) == address


async def test_an_unlinked_instance_ip_keeps_its_address(api: Caller) -> None:
    network = await api.network(TINY)
    interface = await api.interface(network)
    held = await api.address(network, virtual_machine_interface_refs=[interface.reference])
    answer = await api.put(held, virtual_machine_interface_refs=[], annotations=annotations(owner="x"))
    assert answer.status == 200
    assert "virtual_machine_interface_refs" not in await api.read(held)
    assert (await api.try_address(network)).status == 400


async def test_subnets_are_used_in_their_order(api: Caller) -> None:
    network = await api.network(TINY, subnet("10.9.0.0/24"))
    given = [await api.address_of(await api.address(network)) for _ in range(2)]
    assert given == ["10.8.0.2", "10.9.0.3"]


async def test_a_family_limits_the_subnets(api: Caller) -> None:
    network = await api.network(SMALL, SIX)
    six = await api.address(network, instance_ip_family="v6")
    assert await api.address_of(six) == "fd00:10::2"


async def test_an_exhausted_network_names_the_subnets_that_were_tried(api: Caller) -> None:
    network = await api.network(TINY)
    await api.address(network)
    answer = await api.try_address(network)
    assert (answer.status, answer.text) == (
        400,
        f"Virtual-Network({network.fq_name}) has exhausted subnet(['10.8.0.0/30'])",
    )


async def test_a_requested_address_is_granted_and_stored_in_canonical_form(api: Caller) -> None:
    network = await api.network(SIX)
    assert await api.address_of(await api.address(network, "FD00:10:0::0078")) == "fd00:10::78"


@pytest.mark.parametrize("wanted", ["10.8.0.0", "10.8.0.7", "10.8.0.2", "fd00:10::", "fd00:10::ffff:ffff:ffff:ffff"])
async def test_the_first_the_last_and_the_dns_address_are_in_use(api: Caller, wanted: str) -> None:
    answer = await api.try_address(await api.network(SMALL, SIX), wanted)
    assert (answer.status, answer.text) == (409, "IP address already in use")


async def test_an_allocated_address_is_in_use(api: Caller) -> None:
    network = await api.network(SMALL)
    await api.address(network, "10.8.0.5")
    answer = await api.try_address(network, "10.8.0.5")
    assert (answer.status, answer.text) == (409, "IP address already in use")


@pytest.mark.parametrize(("wanted", "family"), [("10.99.0.1", "v4"), ("fd00:10::5", "v4"), ("10.8.0.5", "v6")])
async def test_an_address_outside_of_the_subnets_is_exhausted(api: Caller, wanted: str, family: str) -> None:
    network = await api.network(SMALL)
    answer = await api.try_address(network, wanted, instance_ip_family=family)
    assert (answer.status, answer.text) == (400, f"Virtual-Network({network.fq_name}) has exhausted subnet([])")


async def test_the_gateway_is_given_without_an_interface_even_twice(api: Caller) -> None:
    network = await api.network(SMALL)
    for _ in range(2):
        await api.address(network, "10.8.0.1")


async def test_the_gateway_is_refused_for_the_interface_of_a_machine(api: Caller) -> None:
    network = await api.network(SMALL)
    interface = await api.interface(network, await api.virtual_machine())
    answer = await api.try_address(network, "10.8.0.1", virtual_machine_interface_refs=[interface.reference])
    assert (answer.status, answer.text) == (400, "Gateway IP cannot be used by VM port")
    unlinked = await api.address(network, "10.8.0.1")
    answer = await api.refer(unlinked, interface)
    assert (answer.status, answer.text) == (400, "Gateway IP cannot be used by VM port")


@pytest.mark.parametrize(("given", "first"), [(NO_GATEWAY, "10.8.0.1"), (SIX_WITHOUT_GATEWAY, "fd00:10::1")])
async def test_a_subnet_without_gateway_gives_that_address_to_ports(api: Caller, given: Object, first: str) -> None:
    network = await api.network(given)
    interface = await api.interface(network, await api.virtual_machine())
    address = await api.address(network, virtual_machine_interface_refs=[interface.reference])
    assert await api.address_of(address) == first


@pytest.mark.parametrize(("given", "only"), [(TINY, "10.8.0.2"), (TINY_SIX, "fd00:10::2")])
async def test_the_smallest_subnet_has_one_address(api: Caller, given: Object, only: str) -> None:
    network = await api.network(given)
    assert await api.address_of(await api.address(network)) == only
    assert (await api.try_address(network)).status == 400


async def test_an_address_above_those_that_are_given_automatically_is_granted_on_request(api: Caller) -> None:
    """Without a request, about the first 65,536 of a subnet are given."""
    network = await api.network(LARGE)
    assert await api.address_of(await api.address(network, "10.15.255.254")) == "10.15.255.254"


async def test_an_address_is_linked_later_unlinked_and_linked_to_another(api: Caller) -> None:
    network = await api.network(SMALL)
    first, second = [await api.interface(network, await api.virtual_machine()) for _ in range(2)]
    address = await api.address(network, "10.8.0.5")
    for operation, interface, linked in (
        ("ADD", first, [first]),
        ("ADD", second, [first, second]),
        ("DELETE", first, [second]),
        ("DELETE", second, []),
    ):
        assert (await api.refer(address, interface, operation)).status == 200
        shown = (await api.read(address)).get("virtual_machine_interface_refs", [])
        assert {reference["uuid"] for reference in shown} == {each.uuid for each in linked}


async def test_an_address_outside_of_the_pools_is_granted_on_request_only(api: Caller) -> None:
    pools = [{"start": "10.8.0.100", "end": "10.8.0.101"}]
    network = await api.network(subnet("10.8.0.0/24", allocation_pools=pools))
    assert await api.address_of(await api.address(network)) == "10.8.0.100"
    await api.address(network, "10.8.0.50")


async def test_a_network_without_subnets_has_no_address(api: Caller) -> None:
    network = await api.network()
    answer = await api.try_address(network)
    assert (answer.status, answer.text) == (400, f"Virtual-Network({network.fq_name}) has no defined subnets")


async def test_an_unknown_network_is_refused(api: Caller) -> None:
    nowhere = Made("virtual-network", str(uuid.uuid4()), ["default-domain", unique("p"), "n"])
    body = {"fq_name": [unique("address")], "virtual_network_refs": [{"to": nowhere.fq_name}]}
    answer = await api.try_create("instance-ip", **body)
    assert answer.status == 400
    assert answer.text.startswith("Unknown reference in resource create {")


async def test_an_instance_ip_needs_a_network(api: Caller) -> None:
    answer = await api.try_create("instance-ip", fq_name=[unique("address")])
    assert (answer.status, answer.text) == (400, "can only join an iterable")


async def test_a_malformed_address_is_an_internal_error(api: Caller) -> None:
    assert (await api.try_address(await api.network(SMALL), "10.8.0")).status == 500


async def test_an_unknown_family_is_refused(api: Caller) -> None:
    answer = await api.try_address(await api.network(SMALL), instance_ip_family="v5")
    expected = "Bad property in create: Error validating property instance_ip_family: value must be one of ['v4', 'v6']"
    assert (answer.status, answer.text) == (400, expected)


async def test_an_unknown_interface_is_an_internal_error(api: Caller) -> None:
    name = ["default-domain", "p", unique("interface")]
    reference = {"to": name, "uuid": str(uuid.uuid4())}
    answer = await api.try_address(await api.network(SMALL), virtual_machine_interface_refs=[reference])
    assert answer.status == 500
    assert answer.text.endswith(f"Unknown id: virtual_machine_interface {':'.join(name)}")


async def test_an_address_never_changes(api: Caller) -> None:
    given = await api.address(await api.network(SMALL), "10.8.0.3")
    answer = await api.put(given, instance_ip_address="10.8.0.4")
    assert (answer.status, answer.text) == (400, "Instance IP Address can not be changed")
    assert (await api.put(given, instance_ip_address="10.8.0.3")).status == 200


async def test_the_family_is_shown_only_if_it_was_sent(api: Caller) -> None:
    network = await api.network(SMALL)
    assert "instance_ip_family" not in await api.read(await api.address(network))
    assert (await api.read(await api.address(network, instance_ip_family="v4")))["instance_ip_family"] == "v4"


async def test_the_network_of_the_interface_is_not_compared(api: Caller) -> None:
    interface = await api.interface(await api.network())
    await api.address(await api.network(SMALL), virtual_machine_interface_refs=[interface.reference])


async def test_allocations_at_once_get_different_addresses(api: Caller) -> None:
    network = await api.network(subnet("10.8.0.0/24"))
    assert await statuses(*(api.try_address(network) for _ in range(20))) == [200] * 20
    given = [await api.address_of(made) for made in api.made if made.kind == "instance-ip"]
    assert len(set(given)) == 20


async def test_one_of_many_requests_for_an_address_succeeds(api: Caller) -> None:
    network = await api.network(SMALL)
    found = await statuses(*(api.try_address(network, "10.8.0.5") for _ in range(10)))
    assert found[0] == 200
    assert set(found[1:]) <= {400, 409}


async def test_flat_subnets_belong_to_the_ipam(api: Caller) -> None:
    project = await api.project()
    ipam = await api.create(
        "network-ipam",
        fq_name=[*project.fq_name, "ipam"],
        parent_type="project",
        ipam_subnet_method="flat-subnet",
        ipam_subnets={"subnets": [subnet("10.8.0.0/24")]},
    )
    network = await api.create(
        "virtual-network",
        fq_name=[*project.fq_name, "n"],
        parent_type="project",
        network_ipam_refs=[{**ipam.reference, "attr": {"ipam_subnets": []}}],
    )
    (link,) = (await api.read(network))["network_ipam_refs"]
    assert [set(item) for item in link["attr"]["ipam_subnets"]] == [{"subnet_uuid"}]
    assert await api.address_of(await api.address(network)) == "10.8.0.3"
