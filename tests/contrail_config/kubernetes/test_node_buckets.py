"""Node buckets: the namespace of a node's virtual machines, missing ones, moves between them, foreign objects."""

from collections import Counter

import msgspec
import pytest

from contrail_config.errors import ConflictError, StoreUnavailableError
from contrail_config.kubernetes.kinds import virtual_machine_object
from contrail_config.kubernetes.node_buckets import BUCKETS, NODE_BUCKETS, node_bucket
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualMachine
from contrail_config.store import Change, ChangeType
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.fake_apiserver.kinds import NAMESPACES
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.writes import create
from tests.support.stored_objects import VIRTUAL_MACHINE_KIND
from tests.support.virtual_machines import make_virtual_machine

FROM, TO = "worker-1", "worker-2"


def put_object(server: FakeApiServer, virtual_machine: VirtualMachine, *, namespace: str, name: str) -> None:
    """Creates an object directly in the storage."""
    content = msgspec.to_builtins(virtual_machine_object(virtual_machine))
    metadata = {**content["metadata"], "name": name}
    kind = {"apiVersion": VIRTUAL_MACHINE_KIND.api_version, "kind": VIRTUAL_MACHINE_KIND.kind}
    create(server.storage, VIRTUAL_MACHINE_KIND, namespace, {**content, **kind, "metadata": metadata})


def buckets_of(server: FakeApiServer, virtual_machine: VirtualMachine) -> list[str]:
    """The namespaces that have an object of the virtual machine."""
    return [space for space, name in server.storage.objects(VIRTUAL_MACHINE_KIND) if name == virtual_machine.uuid]


def moved(virtual_machine: VirtualMachine) -> VirtualMachine:
    """The virtual machine on the other node."""
    return msgspec.structs.replace(virtual_machine, node=TO)


def test_nodes_are_spread_over_all_buckets() -> None:
    nodes = Counter(
        node_bucket(f"ip-10-0-{number // 250}-{number % 250}.eu.compute.internal") for number in range(5000)
    )
    assert set(nodes) == set(NODE_BUCKETS)
    assert max(nodes.values()) < 1.5 * 5000 / BUCKETS


def test_the_bucket_of_a_node_is_stable() -> None:
    """It is part of the stored format: agents and managers of different releases must agree."""
    assert (BUCKETS, node_bucket(FROM), node_bucket(TO)) == (32, "contrail-nodes-29", "contrail-nodes-17")


async def test_a_missing_bucket_is_created(manager: KubernetesStore, server: FakeApiServer) -> None:
    bucket = node_bucket(FROM)
    server.remove(NAMESPACES, bucket, namespace="")
    virtual_machine = make_virtual_machine("web", node=FROM)
    await manager.put_virtual_machine(virtual_machine)
    assert buckets_of(server, virtual_machine) == [bucket]
    assert server.storage.objects(NAMESPACES)["", bucket]["metadata"]["labels"] == {
        "app.kubernetes.io/part-of": "contrail-multinet",
        "app.kubernetes.io/managed-by": "contrail-manager",
    }
    await manager.delete_virtual_machine(virtual_machine.uuid)
    assert "delete namespaces" not in server.requests


async def test_a_virtual_machine_moves_to_the_bucket_of_its_new_node(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    virtual_machine = make_virtual_machine("web", node=FROM)
    await manager.put_virtual_machine(virtual_machine)
    await manager.put_virtual_machine(moved(virtual_machine))
    assert buckets_of(server, virtual_machine) == [node_bucket(TO)]
    assert await manager.virtual_machines() == [moved(virtual_machine)]


@pytest.mark.parametrize("verb", ["get", "update", "create", "delete"])
async def test_a_move_interrupted_by_a_kill_is_finished_by_the_next_manager(
    open_manager: OpenManager, server: FakeApiServer, verb: str
) -> None:
    killed, virtual_machine = await open_manager(), make_virtual_machine("web", node=FROM)
    await killed.put_virtual_machine(virtual_machine)
    server.faults.reject(403, verb=verb)
    with pytest.raises(StoreUnavailableError):
        await killed.put_virtual_machine(moved(virtual_machine))
    await check_recovered(await open_manager(), server, virtual_machine)


async def check_recovered(manager: KubernetesStore, server: FakeApiServer, virtual_machine: VirtualMachine) -> None:
    """Checks that a manager has one virtual machine, and the server one object of it, in the bucket of its node."""
    (found,) = await manager.recover_virtual_machines()
    assert found in (virtual_machine, moved(virtual_machine))
    assert buckets_of(server, virtual_machine) == [node_bucket(found.node)]
    assert await manager.virtual_machines() == [found]
    await manager.delete_virtual_machine(found.uuid)
    assert buckets_of(server, virtual_machine) == []


async def test_a_moving_virtual_machine_is_never_served_twice_and_never_lost(
    manager: KubernetesStore, server: FakeApiServer, open_manager: OpenManager
) -> None:
    """At each revision there is at least one object, and at most one that the agent of its node watches."""
    virtual_machine = make_virtual_machine("web", node=FROM)
    await manager.put_virtual_machine(virtual_machine)
    since = server.storage.revision
    await manager.put_virtual_machine(moved(virtual_machine))
    objects = {node_bucket(FROM): FROM}
    for record in server.storage.since(since, VIRTUAL_MACHINE_KIND):
        bucket = record.after["metadata"]["namespace"]
        if record.deleted:
            del objects[bucket]
        else:
            objects[bucket] = record.after["metadata"]["labels"]["opencontrail.org/node"]
        assert objects
        assert sum(node_bucket(node) == bucket for bucket, node in objects.items()) <= 1


async def test_a_deletion_during_a_move_deletes_both_copies(manager: KubernetesStore, server: FakeApiServer) -> None:
    virtual_machine = make_virtual_machine("web", node=FROM)
    await manager.put_virtual_machine(virtual_machine)
    server.faults.reject(403, verb="delete")
    with pytest.raises(StoreUnavailableError):
        await manager.put_virtual_machine(moved(virtual_machine))
    assert len(buckets_of(server, virtual_machine)) == 2
    await manager.delete_virtual_machine(virtual_machine.uuid)
    assert buckets_of(server, virtual_machine) == []


async def test_objects_in_other_namespaces_are_ignored_and_logged_once(
    manager: KubernetesStore, server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    victim = make_virtual_machine("victim")
    await manager.put_virtual_machine(victim)
    copy = msgspec.structs.replace(make_virtual_machine("thief"), interfaces=victim.interfaces)
    put_object(server, copy, namespace="default", name=copy.uuid)
    server.put(VIRTUAL_MACHINE_KIND, "bad", namespace="default", spec={"uuid": "not a uuid"})
    for _ in range(3):
        assert await manager.virtual_machines() == [victim]
    assert caplog.text.count("ignoring 2 virtual machines") == 1
    async with manager.watch_virtual_machines() as changes:
        assert [await anext(changes), await anext(changes)] == [
            Change(ChangeType.ADDED, victim),
            Change(ChangeType.SYNCED, None),
        ]


async def test_an_object_whose_name_is_not_its_uuid_is_ignored(manager: KubernetesStore, server: FakeApiServer) -> None:
    put_object(server, make_virtual_machine("web"), namespace=node_bucket(FROM), name="other")
    assert await manager.virtual_machines() == []


async def test_an_object_that_blocks_a_uuid_is_replaced(manager: KubernetesStore, server: FakeApiServer) -> None:
    virtual_machine = make_virtual_machine("web", node=FROM)
    put_object(server, make_virtual_machine("other"), namespace=node_bucket(FROM), name=virtual_machine.uuid)
    await manager.put_virtual_machine(virtual_machine)
    assert await manager.virtual_machines() == [virtual_machine]


async def test_virtual_machines_of_two_pods_of_one_name_are_both_listed(open_manager: OpenManager) -> None:
    """A manager that lost its lease may have written one after its successor had listed all."""
    late, leader = await open_manager(), await open_manager()
    pods = [make_virtual_machine("web"), make_virtual_machine("web")]
    await late.put_virtual_machine(pods[0])
    await leader.put_virtual_machine(pods[1])
    recovered = await leader.recover_virtual_machines()
    assert {found.uuid for found in recovered} == {pod.uuid for pod in pods}
    with pytest.raises(ConflictError, match="already exists with uuid"):
        await leader.put_virtual_machine(make_virtual_machine("web"))
    await leader.delete_virtual_machine(pods[0].uuid)
    assert await leader.virtual_machines() == [pods[1]]


async def test_a_pod_gets_the_name_of_one_whose_virtual_machine_was_never_written(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    server.faults.reject(403, verb="create")
    with pytest.raises(StoreUnavailableError):
        await manager.put_virtual_machine(make_virtual_machine("web"))
    successor = make_virtual_machine("web")
    await manager.put_virtual_machine(successor)
    assert await manager.virtual_machines() == [successor]
