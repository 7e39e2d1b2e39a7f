"""Deleted address blocks are recovered from the virtual machines by the next manager."""

from contrail_config.objects import VirtualMachine
from tests.manager.kubernetes.conftest import Managed
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import BLOCK_KIND, VIRTUAL_NETWORK_KIND, allocated_addresses, stored_virtual_machines


async def served(objects: ClusterObjects, server: FakeApiServer, name: str) -> VirtualMachine:
    uid = objects.add_pod(name, networks="net-a,net-a")
    await eventually(lambda: uid in stored_virtual_machines(server))
    return stored_virtual_machines(server)[uid]


def addresses_of(vm: VirtualMachine) -> dict[tuple[str, str], str]:
    """Owners by network and address."""
    return {
        (interface.network_uuid, address.address): interface.uuid
        for interface in vm.interfaces
        for address in interface.addresses
    }


def delete_blocks(server: FakeApiServer) -> None:
    for _, name in list(server.storage.objects(BLOCK_KIND)):
        server.remove(BLOCK_KIND, name, namespace="")


async def test_deleted_allocations_are_recovered_from_the_virtual_machines(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        objects.add_nad("net-a", cidr="10.1.0.0/24,fd00::/64")
        vms = [await served(objects, server, f"web-{number}") for number in range(20)]
    delete_blocks(server)
    objects.add_pod("new", networks="net-a")
    async with managed():
        vms.append(await served(objects, server, "newer"))
        given = allocated_addresses(server)
        for vm in vms:
            assert stored_virtual_machines(server)[vm.uuid] == vm
            assert addresses_of(vm).items() <= given.items()
        assert len(given) == 21 * 5 + 3


async def test_a_network_deleted_too_does_not_prevent_the_start(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    """The addresses are protected nevertheless: the network may come back."""
    async with managed():
        objects.add_nad("net-a")
        vm = await served(objects, server, "web-0")
    delete_blocks(server)
    (name,) = [
        name for (_, name), item in server.storage.objects(VIRTUAL_NETWORK_KIND).items() if "nad" in item["spec"]
    ]
    server.remove(VIRTUAL_NETWORK_KIND, name, namespace="")
    objects.remove_nad("net-a")
    async with managed():
        assert stored_virtual_machines(server)[vm.uuid] == vm
        assert addresses_of(vm).items() <= allocated_addresses(server).items()
