"""Address recovery: what virtual machines have is allocated again, and the rest of a lost block is held."""

import asyncio

import msgspec
import pytest

from contrail_config.errors import ExhaustedError
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import ForwardingMode, VirtualMachine, VirtualNetwork
from contrail_config.store import UNPLUGGED_HOLD
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.address_blocks import block_entries
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.stored_objects import BLOCK_KIND, allocated_addresses
from tests.support.virtual_networks import allocate_one, make_network, new_owner, request, start_pod


@pytest.fixture
async def network(open_manager: OpenManager) -> VirtualNetwork:
    return await (await open_manager()).put_network(make_network("left", "10.1.0.0/24"))


async def start_pods(open_manager: OpenManager, network: VirtualNetwork, count: int) -> list[VirtualMachine]:
    """Pods that a former manager started; it runs no more."""
    former = await open_manager()
    pods = [await start_pod(former, [network], f"p{number}") for number in range(count)]
    await former.close()
    return pods


def delete_blocks(server: FakeApiServer) -> None:
    for _, name in list(server.storage.objects(BLOCK_KIND)):
        server.remove(BLOCK_KIND, name, namespace="")


def in_use(pods: list[VirtualMachine]) -> dict[tuple[str, str], str]:
    return {
        (interface.network_uuid, address.address): interface.uuid
        for pod in pods
        for interface in pod.interfaces
        for address in interface.addresses
    }


async def recovered(open_manager: OpenManager) -> KubernetesStore:
    """A new manager after its recovery."""
    manager = await open_manager()
    assert await manager.recover_addresses(await manager.virtual_machines()) == []
    return manager


async def test_deleted_blocks_are_rebuilt_from_the_virtual_machines(
    open_manager: OpenManager, server: FakeApiServer, network: VirtualNetwork
) -> None:
    pods = await start_pods(open_manager, network, 100)
    delete_blocks(server)
    await recovered(open_manager)
    assert allocated_addresses(server) == in_use(pods)


async def test_other_addresses_of_a_lost_block_are_held(
    open_manager: OpenManager, server: FakeApiServer, network: VirtualNetwork, clock: FakeClock
) -> None:
    (pod,) = await start_pods(open_manager, network, 1)
    delete_blocks(server)
    manager = await recovered(open_manager)
    assert await allocate_one(manager, network) == "10.1.0.64"
    await asyncio.gather(*(allocate_one(manager, network) for _ in range(190)))
    with pytest.raises(ExhaustedError, match="the next one may be free in 300 s"):
        await allocate_one(manager, network)
    clock.advance(UNPLUGGED_HOLD + 1)
    assert await allocate_one(manager, network) == "10.1.0.3"
    assert in_use([pod]).items() <= allocated_addresses(server).items()


async def test_an_older_block_in_place_of_the_deleted_one_is_completed(
    open_manager: OpenManager, server: FakeApiServer, network: VirtualNetwork
) -> None:
    """It gives an address in use to an owner that is gone."""
    pods = await start_pods(open_manager, network, 3)
    block = next(iter(server.storage.objects(BLOCK_KIND).values()))
    delete_blocks(server)
    older = {**block["spec"], "addresses": f"10.1.0.2 {new_owner()}\n10.1.0.4 {pods[2].interfaces[0].uuid}\n"}
    server.storage.put(BLOCK_KIND, {**block, "metadata": {**block["metadata"], "uid": new_owner()}, "spec": older})
    manager = await recovered(open_manager)
    assert allocated_addresses(server) == in_use(pods)
    assert await allocate_one(manager, network) == "10.1.0.64"


async def test_one_lost_family_of_an_interface_is_recovered(open_manager: OpenManager, server: FakeApiServer) -> None:
    network = await (await open_manager()).put_network(make_network("both", "10.3.0.0/24", "fd00::/64"))
    former = await open_manager()
    pod = await start_pod(former, [network])
    owner = pod.interfaces[0].uuid
    (six,) = await former.allocate([request(network, owner, family=6)])
    interface = msgspec.structs.replace(pod.interfaces[0], addresses=(*pod.interfaces[0].addresses, six))
    pod = msgspec.structs.replace(pod, interfaces=(interface,))
    await former.put_virtual_machine(pod)
    await former.close()
    for (_, name), block in list(server.storage.objects(BLOCK_KIND).items()):
        if ":" in block["spec"]["first"]:
            server.remove(BLOCK_KIND, name, namespace="")
    await recovered(open_manager)
    assert allocated_addresses(server) == in_use([pod])


async def test_nothing_is_written_if_nothing_is_lost(
    open_manager: OpenManager, server: FakeApiServer, network: VirtualNetwork
) -> None:
    await start_pods(open_manager, network, 5)
    server.requests.clear()
    await recovered(open_manager)
    assert not [request for request in server.requests if request.split()[0] in ("create", "update", "delete")]


async def test_of_two_virtual_machines_with_one_address_the_rightful_one_keeps_it(
    open_manager: OpenManager, server: FakeApiServer, network: VirtualNetwork
) -> None:
    (pod,) = await start_pods(open_manager, network, 1)
    copied = msgspec.structs.replace(pod.interfaces[0], uuid=new_owner())
    copy = msgspec.structs.replace(pod, uuid=new_owner(), interfaces=(copied,))
    manager = await open_manager()
    (conflict,) = await manager.recover_addresses([copy, pod])
    assert conflict == (
        f"network {network.uuid}: address 10.1.0.2 of interface {copied.uuid}"
        f" belongs to interface {pod.interfaces[0].uuid}"
    )
    assert allocated_addresses(server) == in_use([pod])


async def test_hundreds_of_lost_blocks_are_recovered(
    open_manager: OpenManager, server: FakeApiServer, network: VirtualNetwork
) -> None:
    (pod,) = await start_pods(open_manager, network, 1)
    (interface,) = pod.interfaces
    wide = await (await open_manager()).put_network(make_network("wide", "10.64.0.0/12"))
    pods = [
        msgspec.structs.replace(
            pod,
            uuid=new_owner(),
            interfaces=(
                msgspec.structs.replace(
                    interface,
                    uuid=new_owner(),
                    network_uuid=wide.uuid,
                    addresses=(
                        msgspec.structs.replace(
                            interface.addresses[0], address=f"10.64.{number // 4}.{64 * (number % 4) + 5}"
                        ),
                    ),
                ),
            ),
        )
        for number in range(300)
    ]
    manager = await open_manager()
    assert await manager.recover_addresses([pod, *pods]) == []
    assert allocated_addresses(server) == in_use([pod, *pods])


async def test_borrowed_addresses_of_a_lost_block_are_known_again(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    former = await open_manager()
    network = await former.put_network(make_network("pods", "10.4.0.0/26", forwarding_mode=ForwardingMode.L3))
    pods = [await start_pod(former, [network], f"p{number}", node=node) for number, node in enumerate("aab")]
    await former.close()
    delete_blocks(server)
    await recovered(open_manager)
    (block,) = server.storage.objects(BLOCK_KIND).values()
    assert block["spec"]["node"] == "a"
    borrowers = {entry.owner: entry.borrower for entry in block_entries([block]) if entry.borrower is not None}
    assert borrowers == {pods[2].interfaces[0].uuid: "b"}
