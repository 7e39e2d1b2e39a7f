"""Networks: unique by uuid, name and vni; subnets with allocated addresses are protected."""

import msgspec
import pytest

from contrail_config.errors import ConflictError, InUseError, NotFoundError, StoreError
from contrail_config.objects import Route, Subnet
from contrail_config.store import Store
from tests.support.stores import OpenStore
from tests.support.virtual_networks import allocate_one, make_network, new_owner, request, start_pod


async def test_a_network_is_stored_completely(store: Store, open_store: OpenStore) -> None:
    stored = await store.put_network(
        make_network(
            "left",
            "10.1.0.0/24",
            "fd00:1::/64",
            excluded=("10.1.0.9",),
            dns=("10.1.0.2", "fd00:1::2"),
            mtu=9000,
            routes=(Route("10.9.0.0/16", "10.1.0.3"), Route("10.8.0.0/16")),
            ip_fabric_snat=True,
            nad="default/left",
        )
    )
    assert await store.networks() == [stored]
    await store.close()
    assert await (await open_store()).networks() == [stored]


async def test_networks_are_listed_by_name(store: Store) -> None:
    for name in ("b", "a", "c"):
        await store.put_network(make_network(name))
    assert [network.fq_name[2] for network in await store.networks()] == ["a", "b", "c"]


async def test_a_replaced_network_takes_effect_at_once(store: Store) -> None:
    network = await store.put_network(make_network(dns=("10.1.0.8",)))
    asked = request(network)
    assert (await store.allocate([asked]))[0].dns == ("10.1.0.8",)
    await store.put_network(make_network(dns=("10.1.0.9",)))
    assert (await store.allocate([asked]))[0].dns == ("10.1.0.9",)


@pytest.mark.lacking("vnc", "the server numbers its own networks from the same pool")
async def test_each_network_gets_the_lowest_free_vni(store: Store) -> None:
    stored = [await store.put_network(make_network(name)) for name in "abcd"]
    assert [network.vni for network in stored] == [1, 2, 3, 4]
    await store.delete_network(stored[1].uuid)
    assert (await store.put_network(make_network("e"))).vni == 2
    assert (await store.put_network(make_network("f"))).vni == 5


async def test_a_replaced_network_keeps_its_vni(store: Store) -> None:
    first = await store.put_network(make_network("a"))
    replaced = await store.put_network(make_network("a", mtu=9000))
    assert replaced == msgspec.structs.replace(first, mtu=9000)
    assert await store.networks() == [replaced]


@pytest.mark.lacking("vnc", "the server refuses a requested number")
async def test_a_requested_vni_is_assigned_unless_another_network_has_it(store: Store) -> None:
    assert (await store.put_network(make_network("a", vni=7))).vni == 7
    with pytest.raises(ConflictError, match=r"network \S+:b: vni 7 is already used by network \S+:a"):
        await store.put_network(make_network("b", vni=7))


async def test_a_name_belongs_to_one_uuid(store: Store) -> None:
    stored = await store.put_network(make_network("a"))
    with pytest.raises(ConflictError, match=rf"{stored.name}: already exists with uuid {stored.uuid}"):
        await store.put_network(make_network("a", uuid=new_owner()))
    assert await store.networks() == [stored]


async def test_a_network_cannot_be_renamed(store: Store) -> None:
    first = await store.put_network(make_network("a"))
    with pytest.raises(ConflictError, match=r"already exists as default-domain:k8s-default:a, and cannot be renamed"):
        await store.put_network(make_network("b", uuid=first.uuid))
    assert await store.networks() == [first]


async def test_deleting_a_missing_network_is_no_error(store: Store) -> None:
    await store.delete_network(new_owner())


async def test_a_network_with_interfaces_cannot_be_deleted(store: Store) -> None:
    network = await store.put_network(make_network())
    virtual_machine = await start_pod(store, [network])
    with pytest.raises(InUseError, match=network.name):
        await store.delete_network(network.uuid)
    assert await store.networks() == [network]
    await store.delete_virtual_machine(virtual_machine.uuid)
    await store.delete_network(network.uuid)
    assert await store.networks() == []


async def test_a_deleted_network_has_no_addresses(store: Store) -> None:
    network = await store.put_network(make_network())
    owner = new_owner()
    await allocate_one(store, network, owner)
    await store.release([owner])
    await store.delete_network(network.uuid)
    with pytest.raises(NotFoundError, match=network.uuid):
        await allocate_one(store, network)


async def test_the_subnet_of_an_allocated_address_cannot_be_removed(store: Store) -> None:
    stored = await store.put_network(make_network("a", "10.1.0.0/24", "10.2.0.0/24"))
    await allocate_one(store, stored, address="10.2.0.9")
    with pytest.raises(ConflictError, match=r"cannot remove the subnet of 10\.2\.0\.9"):
        await store.put_network(make_network("a", "10.1.0.0/24"))
    assert await store.networks() == [stored]
    assert await allocate_one(store, stored, address="10.1.0.2") == "10.1.0.2"


async def test_a_subnet_without_allocated_addresses_can_be_removed(store: Store) -> None:
    stored = await store.put_network(make_network("a", "10.1.0.0/24", "10.2.0.0/24"))
    owner = new_owner()
    await allocate_one(store, stored, owner, address="10.1.0.9")
    await store.release([owner])
    await store.put_network(make_network("a", "10.2.0.0/24"))
    assert await allocate_one(store, stored) == "10.2.0.2"


@pytest.mark.lacking("vnc", "the server refuses another prefix length while addresses are in use")
async def test_a_network_can_grow_around_its_allocated_addresses(store: Store) -> None:
    stored = await store.put_network(make_network("a", "10.1.0.0/30"))
    owner = new_owner()
    assert await allocate_one(store, stored, owner) == "10.1.0.2"
    await store.put_network(make_network("a", "10.1.0.0/16"))
    (again,) = await store.allocate([request(stored, owner)])
    assert (again.address, again.prefix_length) == ("10.1.0.2", 16)
    assert await allocate_one(store, stored) == "10.1.0.3"


async def test_an_allocated_address_cannot_become_the_gateway(store: Store) -> None:
    stored = await store.put_network(make_network("a"))
    address = await allocate_one(store, stored)
    moved = Subnet(cidr="10.1.0.0/24", gateway=address)
    with pytest.raises(ConflictError, match=f"gateway {address} is already allocated"):
        await store.put_network(make_network("a", subnets=(moved,)))


async def test_an_allocated_address_can_be_excluded(store: Store) -> None:
    stored = await store.put_network(make_network("a", "10.1.0.0/29"))
    owner = new_owner()
    address = await allocate_one(store, stored, owner)
    await store.put_network(make_network("a", "10.1.0.0/29", excluded=(address,)))
    assert await allocate_one(store, stored, owner) == address
    await store.release([owner], hold=0)
    assert address not in [await allocate_one(store, stored) for _ in range(4)]


@pytest.mark.parametrize(
    ("subnets", "reason"),
    [
        ((Subnet(cidr="10.1.0.5/24", gateway=None),), "has host bits set"),
        ((Subnet(cidr="nonsense", gateway=None),), "nonsense"),
        ((Subnet(cidr="10.1.0.0/24", gateway="fd00::1"),), "fd00::1"),
        ((Subnet(cidr="10.1.0.0/24", gateway=None), Subnet(cidr="10.1.0.0/28", gateway=None)), "overlap"),
    ],
)
async def test_malformed_subnets_are_rejected(store: Store, subnets: tuple[Subnet, ...], reason: str) -> None:
    with pytest.raises(StoreError, match=reason):
        await store.put_network(make_network("a", subnets=subnets))
    assert await store.networks() == []
