"""Network slices on the server: written with virtual machines, put back, removed, and not rewritten without need."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.allocation_cache import CLEANUP_DELAY
from contrail_config.kubernetes.compared_slice import SliceState
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import NETWORK_SLICES, network_slice_name, network_slice_object
from contrail_config.kubernetes.network_buckets import network_bucket
from contrail_config.kubernetes.node_addresses import TUNNEL_ADDRESSES_KEY
from contrail_config.kubernetes.slice_writer import INTERVAL
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import ForwardingMode, NetworkSlice, VirtualNetwork, parse_endpoint
from contrail_config.store import ChangeType
from tests.support.cluster_objects import NODES
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import BLOCK_KIND
from tests.support.virtual_networks import make_network, start_pod

SLICES = Kind("opencontrail.org", "v1alpha1", "NetworkSlice", "networkslices", custom=True, blind_updates=False)
A, B = "node-a", "node-b"
DEADLINE = 5.0


OpenWriter = Callable[[], AbstractAsyncContextManager[KubernetesStore]]
"""Opens the store of a manager that writes slices, until the context is left."""


@pytest.fixture
async def open_writer(client: KubeClient, server: FakeApiServer, clock: FakeClock) -> OpenWriter:
    await ensure_crds(client)
    for number, node in enumerate((A, B), start=1):
        put_node(server, node, f"192.0.2.{number}")

    @asynccontextmanager
    async def open_one() -> AsyncIterator[KubernetesStore]:
        store = KubernetesStore(client, clock=clock, flush_interval=0.0, slices=True)
        await store.recover_virtual_machines()
        task = asyncio.create_task(store.maintain_slices())
        try:
            await eventually(lambda: store.slices.writer.problem is None)
            yield store
        finally:
            task.cancel()
            await asyncio.wait([task])
            await store.close()

    return open_one


@pytest.fixture
async def manager(open_writer: OpenWriter) -> AsyncIterator[KubernetesStore]:
    async with open_writer() as store:
        yield store


@pytest.fixture
async def blue(manager: KubernetesStore) -> VirtualNetwork:
    return await manager.put_network(make_network("blue", "10.1.0.0/24"))


@pytest.fixture
async def pods(manager: KubernetesStore) -> VirtualNetwork:
    return await manager.put_network(make_network("pods", "10.2.0.0/24", forwarding_mode=ForwardingMode.L3))


@pytest.fixture
async def large(manager: KubernetesStore) -> VirtualNetwork:
    """With blocks enough for an address of each node."""
    return await manager.put_network(make_network("large", "10.3.0.0/20", forwarding_mode=ForwardingMode.L3))


def put_node(server: FakeApiServer, name: str, address: str, **annotations: str) -> None:
    status = {"addresses": [{"type": "InternalIP", "address": address}]}
    before = server.storage.objects(NODES).get(("", name), {"metadata": {"uid": f"uid of {name}"}})
    metadata = {**before["metadata"], "name": name, "annotations": annotations}
    server.storage.put(NODES, {"metadata": metadata, "status": status})


def stored(server: FakeApiServer) -> dict[tuple[str, str], dict[str, Any]]:
    """The specs of all slices that are valid, by network name and node."""
    specs = [item["spec"] for item in server.storage.objects(SLICES).values()]
    return {(spec["network"][2], spec["node"]): spec for spec in specs if "network" in spec}


def endpoints(server: FakeApiServer, network: str = "blue") -> dict[str, list[str]]:
    """The addresses in a network, by node."""
    return {
        node: sorted(address for each in spec.get("endpoints", ()) for address in each.split()[1:])
        for (name, node), spec in stored(server).items()
        if name == network
    }


def writes(server: FakeApiServer) -> list[str]:
    verbs = ("create", "patch", "update", "delete")
    return [request for request in server.requests if request in {f"{verb} networkslices" for verb in verbs}]


async def settled(store: KubernetesStore) -> None:
    """Returns when the slices were compared with all that the server has sent."""
    queue = store.slices.writer.queue
    await eventually(lambda: len(queue) == 0 and not queue.scheduled)


async def test_a_slice_is_written_with_the_virtual_machine_and_removed_with_the_last_one(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer
) -> None:
    first = await start_pod(manager, [blue], "one", node=A)
    second = await start_pod(manager, [blue], "two", node=A)
    await start_pod(manager, [blue], "three", node=B)
    await eventually(lambda: endpoints(server) == {A: ["10.1.0.2", "10.1.0.3"], B: ["10.1.0.4"]})
    item = server.storage.objects(SLICES)[network_bucket(blue.uuid), network_slice_name(blue.uuid, A)]
    assert item["spec"] | {"endpoints": 2} == {
        "networkUuid": blue.uuid,
        "node": A,
        "network": list(blue.fq_name),
        "vni": blue.vni,
        "tunnel": ["192.0.2.1"],
        "endpoints": 2,
    }
    assert item["status"] == {"network": "blue", "tunnel": "192.0.2.1", "endpoints": 2, "blocks": ""}
    for each in (first, second):
        await manager.delete_virtual_machine(each.uuid)
    await eventually(lambda: endpoints(server) == {B: ["10.1.0.4"]})


async def test_a_restart_rewrites_nothing_that_is_right(open_writer: OpenWriter, server: FakeApiServer) -> None:
    async with open_writer() as store:
        blue = await store.put_network(make_network("blue", "10.1.0.0/24"))
        pods = await store.put_network(make_network("pods", "10.2.0.0/24", forwarding_mode=ForwardingMode.L3))
        for name, node in (("one", A), ("two", B)):
            await start_pod(store, [pods, blue], name, node=node)
        await eventually(lambda: len(stored(server)) == 4)
        await settled(store)
    before = len(writes(server))
    async with open_writer() as store:
        await settled(store)
    assert writes(server)[before:] == []


async def test_what_a_killed_manager_did_not_write_is_written_by_the_next(
    open_writer: OpenWriter, server: FakeApiServer, client: KubeClient, clock: FakeClock
) -> None:
    async with open_writer() as store:
        blue = await store.put_network(make_network("blue", "10.1.0.0/24"))
        gone = await start_pod(store, [blue], "one", node=B)
        await start_pod(store, [blue], "two", node=A)
        await eventually(lambda: set(endpoints(server)) == {A, B})
    killed = KubernetesStore(client, clock=clock, flush_interval=0.0, slices=True)  # before it writes a slice
    await killed.recover_virtual_machines()
    await start_pod(killed, [blue], "three", node=A)
    await killed.delete_virtual_machine(gone.uuid)
    await killed.close()
    assert {node: len(each) for node, each in endpoints(server).items()} == {A: 1, B: 1}
    async with open_writer():
        await eventually(lambda: {node: len(each) for node, each in endpoints(server).items()} == {A: 2})


async def test_deleted_and_edited_slices_are_put_back(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer, client: KubeClient
) -> None:
    await start_pod(manager, [blue], node=A)
    await eventually(lambda: endpoints(server) == {A: ["10.1.0.2"]})
    bucket, name = network_bucket(blue.uuid), network_slice_name(blue.uuid, A)
    server.remove(SLICES, name, namespace=bucket)
    await eventually(lambda: endpoints(server) == {A: ["10.1.0.2"]})
    await settled(manager)
    item = server.storage.objects(SLICES)[bucket, name]
    server.storage.put(SLICES, {**item, "spec": {**item["spec"], "tunnel": ["192.0.2.66"]}})
    await eventually(lambda: stored(server)["blue", A]["tunnel"] == ["192.0.2.1"])
    item = server.storage.objects(SLICES)[bucket, name]
    server.storage.put(SLICES, {**item, "spec": {"networkUuid": "nonsense"}})
    await eventually(lambda: endpoints(server) == {A: ["10.1.0.2"]})
    await settled(manager)
    assert manager.invalid_objects() == []


async def test_slices_that_should_not_exist_are_deleted(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer, client: KubeClient
) -> None:
    foreign = network_slice_object(NetworkSlice(blue.uuid, "node-z", blue.fq_name, 3, tunnel=("192.0.2.66",)))
    await start_pod(manager, [blue], node=A)
    await client.create(NETWORK_SLICES, foreign, namespace=network_bucket(blue.uuid))
    await eventually(lambda: set(endpoints(server)) == {A})
    assert server.storage.objects(SLICES).keys() == {(network_bucket(blue.uuid), network_slice_name(blue.uuid, A))}


async def test_objects_in_other_namespaces_are_left_alone(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer
) -> None:
    server.put(SLICES, "mine", namespace="default", spec={"networkUuid": "nonsense"})
    await start_pod(manager, [blue], node=A)
    await eventually(lambda: len(server.storage.objects(SLICES)) == 2)
    await settled(manager)
    assert ("default", "mine") in server.storage.objects(SLICES)
    assert manager.invalid_objects() == []


async def test_fields_of_a_newer_release_are_preserved(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer
) -> None:
    await start_pod(manager, [blue], "one", node=A)
    await eventually(lambda: endpoints(server) == {A: ["10.1.0.2"]})
    item = server.storage.objects(SLICES)[network_bucket(blue.uuid), network_slice_name(blue.uuid, A)]
    server.storage.put(SLICES, {**item, "spec": {**item["spec"], "newer": 1}})
    await start_pod(manager, [blue], "two", node=A)
    await eventually(lambda: endpoints(server) == {A: ["10.1.0.2", "10.1.0.3"]})
    assert stored(server)["blue", A]["newer"] == 1


async def test_addresses_of_nodes_are_followed(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer
) -> None:
    await start_pod(manager, [blue], "one", node=A)
    await start_pod(manager, [blue], "two", node="node-c")
    await eventually(lambda: set(endpoints(server)) == {A})
    put_node(server, "node-c", "192.0.2.3")
    await eventually(lambda: set(endpoints(server)) == {A, "node-c"})
    put_node(server, A, "192.0.2.9")
    await eventually(lambda: stored(server)["blue", A]["tunnel"] == ["192.0.2.9"])
    put_node(server, A, "192.0.2.9", **{TUNNEL_ADDRESSES_KEY: "198.51.100.1"})
    await eventually(lambda: stored(server)["blue", A]["tunnel"] == ["198.51.100.1"])
    server.remove(NODES, A, namespace="")
    await eventually(lambda: set(endpoints(server)) == {"node-c"})


async def test_pods_of_a_routed_network_cost_no_write_but_for_new_blocks(
    manager: KubernetesStore, large: VirtualNetwork, server: FakeApiServer, clock: FakeClock
) -> None:
    first = await start_pod(manager, [large], "first", node=A)
    await eventually(lambda: stored(server).get(("large", A), {}).get("blocks") == ["10.3.0.0/26"])
    assert stored(server)["large", A]["nodeAddresses"] == ["10.3.0.2"]
    await settled(manager)
    before = len(writes(server))
    for number in range(20):
        churned = await start_pod(manager, [large], f"pod-{number}", node=A)
        await manager.delete_virtual_machine(churned.uuid, hold=0.0)
    await manager.delete_virtual_machine(first.uuid, hold=0.0)
    again = await start_pod(manager, [large], "again", node=A)
    await settled(manager)
    assert writes(server)[before:] == []
    await manager.delete_virtual_machine(again.uuid, hold=0.0)
    clock.advance(CLEANUP_DELAY)
    await manager.address_owners()
    await eventually(lambda: not server.storage.objects(BLOCK_KIND) and not stored(server))


async def test_a_node_without_pods_that_keeps_a_block_has_a_slice(
    manager: KubernetesStore, large: VirtualNetwork, server: FakeApiServer
) -> None:
    await manager.node_blocks.keep(large.uuid, A)
    await eventually(lambda: ("large", A) in stored(server))
    found = stored(server)["large", A]
    assert (found["blocks"], found["nodeAddresses"], found["tunnel"]) == (["10.3.0.0/26"], ["10.3.0.2"], ["192.0.2.1"])
    await start_pod(manager, [large], "one", node=A)
    await settled(manager)
    assert stored(server)["large", A] == found


async def test_borrowed_addresses_of_a_routed_network_are_listed(
    manager: KubernetesStore, pods: VirtualNetwork, server: FakeApiServer
) -> None:
    for number in range(4):
        await start_pod(manager, [pods], f"pod-{number}", node=f"other-{number}")
    borrower = await start_pod(manager, [pods], "borrower", node=A)
    (address,) = borrower.interfaces[0].addresses
    await eventually(lambda: stored(server).get(("pods", A), {}).get("borrowed") == [address.address])
    assert "blocks" not in stored(server)["pods", A]
    await manager.delete_virtual_machine(borrower.uuid)
    await eventually(lambda: ("pods", A) not in stored(server))


async def test_pods_that_come_while_a_slice_is_written_share_one_write(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer
) -> None:
    await start_pod(manager, [blue], "first", node=A)
    await eventually(lambda: endpoints(server) == {A: ["10.1.0.2"]})
    await settled(manager)
    before = len(writes(server))
    await asyncio.gather(*(start_pod(manager, [blue], f"pod-{number}", node=A) for number in range(20)))
    await eventually(lambda: len(endpoints(server)[A]) == 21)
    assert len(writes(server)) - before < 10


async def test_a_slice_that_changes_again_and_again_is_written_in_intervals(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer
) -> None:
    """The first pod does not wait; each of the others is awaited, so none of them shares a write by chance."""
    started = asyncio.get_running_loop().time()
    for number in range(20):
        await start_pod(manager, [blue], f"pod-{number}", node=A)
    await eventually(lambda: len(endpoints(server)[A]) == 20)
    elapsed = asyncio.get_running_loop().time() - started
    assert len(writes(server)) <= 2 + elapsed / INTERVAL


async def test_rejected_writes_of_slices_are_retried_and_fail_no_pod(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer
) -> None:
    await start_pod(manager, [blue], "one", node=A)
    await eventually(lambda: endpoints(server) == {A: ["10.1.0.2"]})
    server.faults.reject(403, verb="patch")
    await start_pod(manager, [blue], "two", node=A)
    await eventually(lambda: endpoints(server) == {A: ["10.1.0.2", "10.1.0.3"]})


async def test_a_virtual_machine_that_could_not_be_written_leaves_no_endpoint(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer
) -> None:
    await start_pod(manager, [blue], "one", node=A)
    await eventually(lambda: endpoints(server) == {A: ["10.1.0.2"]})
    server.faults.reject(403, verb="create")
    with pytest.raises(StoreUnavailableError):
        await start_pod(manager, [blue], "two", uid="aaaaaaaa-0000-4000-8000-000000000001", node=A)
    await manager.release(list(await manager.address_owners()), hold=0.0)
    await eventually(lambda: endpoints(server) == {A: ["10.1.0.2"]})


async def test_an_agent_sees_the_slices_of_the_networks_that_it_asks_for(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer, client: KubeClient
) -> None:
    red = await manager.put_network(make_network("red", "10.1.0.0/24"))
    await start_pod(manager, [blue, red], "one", node=A)
    await eventually(lambda: len(stored(server)) == 2)
    reader = KubernetesStore(client)
    async with asyncio.timeout(DEADLINE), reader.watch_slices([blue.uuid]) as changes:
        added, synced = await anext(changes), await anext(changes)
        assert (added.type, synced.type) == (ChangeType.ADDED, ChangeType.SYNCED)
        assert added.object is not None
        assert (added.object.network_uuid, added.object.node) == (blue.uuid, A)
        assert [parse_endpoint(each).addresses for each in added.object.endpoints] == [("10.1.0.2",)]
        gone = await start_pod(manager, [red, blue], "two", node=B)
        assert (await anext(changes)).type is ChangeType.ADDED
        await manager.delete_virtual_machine(gone.uuid)
        deleted = await anext(changes)
        assert deleted.object is not None
        assert (deleted.type, deleted.object.node) == (ChangeType.DELETED, B)
    await reader.close()


async def test_readers_skip_and_report_invalid_slices(
    blue: VirtualNetwork, manager: KubernetesStore, server: FakeApiServer, client: KubeClient
) -> None:
    reader = KubernetesStore(client)
    await start_pod(manager, [blue], "one", node=A)
    await eventually(lambda: len(stored(server)) == 1)
    item = server.storage.objects(SLICES)[network_bucket(blue.uuid), network_slice_name(blue.uuid, A)]
    await manager.close()
    server.storage.put(SLICES, {**item, "spec": {**item["spec"], "tunnel": ["127.0.0.1"]}})
    async with asyncio.timeout(DEADLINE), reader.watch_slices([blue.uuid]) as changes:
        assert (await anext(changes)).type is ChangeType.SYNCED
        (invalid,) = reader.invalid_objects()
        assert (invalid.kind, "127.0.0.1" in invalid.problem) == ("NetworkSlice", True)
    await reader.close()


async def test_a_store_without_slices_writes_none(client: KubeClient, server: FakeApiServer, clock: FakeClock) -> None:
    await ensure_crds(client)
    store = KubernetesStore(client, clock=clock, flush_interval=0.0)
    blue = await store.put_network(make_network("blue", "10.1.0.0/24"))
    await start_pod(store, [blue], node=A)
    await store.close()
    assert not writes(server)


async def test_slices_are_compared_with_what_the_server_has(
    manager: KubernetesStore, blue: VirtualNetwork, server: FakeApiServer
) -> None:
    await start_pod(manager, [blue], "one", node=A)
    second = await start_pod(manager, [blue], "two", node=B)

    def states() -> dict[str, SliceState]:
        compared = {key.node: manager.slices.compared(key) for key in manager.slices.keys({blue.uuid, "other"})}
        return {node: each.state for node, each in compared.items() if each is not None}

    await eventually(lambda: states() == {A: SliceState.CURRENT, B: SliceState.CURRENT})
    await manager.slices.writer.queue.close()  # from now on nothing is corrected
    key = network_bucket(blue.uuid), network_slice_name(blue.uuid, A)
    item = server.storage.objects(SLICES)[key]
    server.storage.put(SLICES, {**item, "spec": {**item["spec"], "tunnel": ["192.0.2.77"]}})
    await eventually(lambda: states() == {A: SliceState.DIFFERENT, B: SliceState.CURRENT})
    server.storage.put(SLICES, {**item, "spec": {"node": A}})
    await eventually(lambda: states() == {A: SliceState.INVALID, B: SliceState.CURRENT})
    server.storage.remove(SLICES, item)
    await eventually(lambda: states() == {A: SliceState.MISSING, B: SliceState.CURRENT})
    await manager.delete_virtual_machine(second.uuid)
    await eventually(lambda: states() == {A: SliceState.MISSING, B: SliceState.SUPERFLUOUS})


async def test_nothing_is_known_of_slices_before_they_are_listed(client: KubeClient, blue: VirtualNetwork) -> None:
    store = KubernetesStore(client, slices=True)
    with pytest.raises(StoreUnavailableError, match="not listed yet"):
        store.slices.keys({blue.uuid})
    assert KubernetesStore(client).slices.keys({blue.uuid}) == set()
