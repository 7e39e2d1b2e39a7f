"""Network numbers: none is given to a second network while virtual machines of the first have it."""

import msgspec
import pytest

from contrail_config.errors import ConflictError
from contrail_config.kubernetes.network_numbers import NetworkNumbers
from contrail_config.objects import VirtualMachine, VirtualNetwork
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.stored_objects import VIRTUAL_NETWORK_KIND
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import interface_in, make_network, new_owner

A, B = make_network("a", vni=1), make_network("b", vni=2)


def machine(*networks: VirtualNetwork) -> VirtualMachine:
    interfaces = [msgspec.structs.replace(interface_in(each, new_owner()), vni=each.vni) for each in networks]
    return make_virtual_machine(uid=new_owner(), interfaces=tuple(interfaces))


def test_a_number_belongs_to_its_network_until_the_last_interface_is_gone() -> None:
    numbers = NetworkNumbers()
    first, second = (numbers.add(machine(A, B).interfaces) for _ in range(2))
    numbers.remove(first)
    assert (numbers.of(A.uuid), numbers.of_others(A.uuid)) == ([1], {2})
    numbers.remove(second)
    assert (numbers.of(A.uuid), numbers.of_others(A.uuid)) == ([], set())


def test_of_several_numbers_that_of_most_interfaces_comes_first() -> None:
    numbers = NetworkNumbers()
    for vni in (7, 9, 9, 0):
        numbers.add(machine(msgspec.structs.replace(A, vni=vni)).interfaces)
    numbers.reserve(A)
    assert numbers.of(A.uuid) == [9, 7, 1]


def test_the_number_of_a_deleted_network_is_reserved_until_it_exists_again() -> None:
    numbers = NetworkNumbers()
    numbers.reserve(A)
    assert (numbers.of(A.uuid), numbers.of_others(B.uuid)) == ([1], {1})
    numbers.end_reservation(A.uuid)
    assert (numbers.of(A.uuid), numbers.of_others(B.uuid)) == ([], set())


async def test_a_wanted_number_that_pods_of_another_network_have_is_refused(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    former = await open_manager()
    await former.put_network(A)
    await former.put_virtual_machine(machine(A))
    server.remove(VIRTUAL_NETWORK_KIND, A.uuid, namespace="")
    manager = await open_manager()
    with pytest.raises(ConflictError, match="vni 1 still belongs to another network"):
        await manager.put_network(msgspec.structs.replace(B, vni=1))
    assert (await manager.put_network(msgspec.structs.replace(B, vni=0))).vni == 2
    assert (await manager.put_network(msgspec.structs.replace(A, vni=0))).vni == 1


async def test_the_number_of_a_network_that_a_manager_deletes_is_free(open_manager: OpenManager) -> None:
    manager = await open_manager()
    await manager.put_network(A)
    await manager.delete_network(A.uuid)
    assert (await manager.put_network(msgspec.structs.replace(B, vni=0))).vni == 1


async def test_virtual_machines_are_listed_once_and_not_for_each_network(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    manager = await open_manager()
    for count in range(3):
        await manager.put_network(make_network(f"net-{count}"))
    assert server.requests.count("list virtualmachines") == 1
