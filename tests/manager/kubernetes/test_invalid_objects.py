"""Objects that do not validate, or whose metadata and spec disagree: skipped and reported, and they end no process."""

import asyncio
import contextlib
import ipaddress
import uuid
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from contrail_config.kube.client_config import ClientConfig
from contrail_config.kubernetes.blocks import AddressEntry, Block, BlockKey, PoolKey
from contrail_config.kubernetes.kinds import (
    NAMESPACE_LABEL,
    NETWORK_LABEL,
    NODE_LABEL,
    POD_LABEL,
    NodeReport,
    virtual_machine_object,
    virtual_network_object,
)
from contrail_config.kubernetes.node_buckets import node_bucket
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualMachine, network_uuid
from manager.configuration import KubernetesSourceSettings, ManagerConfiguration
from manager.kubernetes import process
from manager.kubernetes.cluster import ClusterMember, join_cluster
from manager.kubernetes.invalid_objects import INVALID
from manager.mapping.fq_names import pod_network_name
from tests.manager.kubernetes.test_node_report_watch import NODE_KIND
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.writes import merge
from tests.support.recorded_reflector import DEADLINE, eventually
from tests.support.stored_objects import (
    BLOCK_KIND,
    VIRTUAL_MACHINE_KIND,
    VIRTUAL_NETWORK_KIND,
    add_node_buckets,
    allocated_addresses,
    stored_networks,
    stored_virtual_machines,
)
from tests.support.virtual_machines import NODE, make_virtual_machine
from tests.support.virtual_networks import make_network, new_owner

VM = make_virtual_machine("broken", node=NODE)
NETWORK = make_network("broken", vni=77)
BLOCK = Block(BlockKey(PoolKey(NETWORK.uuid, 4), 0x0A010000), None, {0x0A010002: AddressEntry(new_owner())})
REPORT = NodeReport("2026-11-21T12:00:00Z", "instance", unplugged=(new_owner(),))


class Invalid(NamedTuple):
    """A change that makes an object invalid, and its problem."""

    kind: Kind
    change: dict[str, Any]
    problem: str


INVALIDS = {
    "undecodable virtual machine": Invalid(VIRTUAL_MACHINE_KIND, {"spec": {"interfaces": 1}}, "Expected `array`"),
    "virtual machine with a bad uuid": Invalid(
        VIRTUAL_MACHINE_KIND, {"metadata": {"name": "x"}, "spec": {"uuid": "x"}}, "uuid: 'x' is not a UUID"
    ),
    "virtual machine under another uuid": Invalid(
        VIRTUAL_MACHINE_KIND, {"metadata": {"name": new_owner()}}, f"must be '{VM.uuid}', by its spec.uuid"
    ),
    "virtual machine with another's label": Invalid(
        VIRTUAL_MACHINE_KIND, {"metadata": {"labels": {NODE_LABEL: "other"}}}, "=other is not the node of the spec"
    ),
    "virtual machine with the label of another namespace": Invalid(
        VIRTUAL_MACHINE_KIND, {"metadata": {"labels": {NAMESPACE_LABEL: "x"}}}, "=x is not the namespace of the spec"
    ),
    "virtual machine without the label of its pod": Invalid(
        VIRTUAL_MACHINE_KIND, {"metadata": {"labels": {POD_LABEL: None}}}, "=None is not the pod of the spec"
    ),
    "virtual machine with another's name": Invalid(
        VIRTUAL_MACHINE_KIND, {"spec": {"name": "k8s__shop__db"}}, "'k8s__shop__db' is not that of cluster k8s"
    ),
    "virtual machine with a bad MAC": Invalid(
        VIRTUAL_MACHINE_KIND,
        {"spec": {"interfaces": [{**msgspec.to_builtins(VM.interfaces[0]), "mac": "x"}]}},
        "interfaces[0].mac: 'x' is not a MAC address",
    ),
    "virtual machine with a bad reason": Invalid(
        VIRTUAL_MACHINE_KIND,
        {"spec": {"pending": {"reason": "not found", "message": ""}}},
        "pending.reason: 'not found' is not the reason of an event",
    ),
    "undecodable network": Invalid(VIRTUAL_NETWORK_KIND, {"spec": {"subnets": "none"}}, "Expected `array`"),
    "network under another uuid": Invalid(
        VIRTUAL_NETWORK_KIND, {"metadata": {"name": new_owner()}}, f"must be '{NETWORK.uuid}'"
    ),
    "network of another uuid with the name of the pod network": Invalid(
        VIRTUAL_NETWORK_KIND,
        {"spec": {"fqName": pod_network_name("k8s")}},
        f"uuid: must be '{network_uuid(pod_network_name('k8s'))}', by the name",
    ),
    "network with a bad subnet": Invalid(
        VIRTUAL_NETWORK_KIND,
        {"spec": {"subnets": [{"cidr": "10.1.0.0/33", "gateway": None}]}},
        "subnets[0].cidr: '10.1.0.0/33' is not a CIDR",
    ),
    "network of a bad namespace": Invalid(
        VIRTUAL_NETWORK_KIND, {"spec": {"namespace": "a/b"}}, "namespace: 'a/b' is not the name of a namespace"
    ),
    "network of no NAD": Invalid(
        VIRTUAL_NETWORK_KIND, {"spec": {"nad": "blue"}}, "nad: 'blue' is not the namespace and the name of a NAD"
    ),
    "network with overlapping subnets": Invalid(
        VIRTUAL_NETWORK_KIND,
        {"spec": {"subnets": [{"cidr": cidr, "gateway": None} for cidr in ("10.0.0.0/8", "10.1.0.0/16")]}},
        "overlap",
    ),
    "block with a bad line": Invalid(BLOCK_KIND, {"spec": {"addresses": "nonsense\n"}}, "not enough values"),
    "block with an address of another one": Invalid(
        BLOCK_KIND, {"spec": {"addresses": f"10.1.0.64 {new_owner()}\n"}}, "10.1.0.64 is not an address of the block"
    ),
    "block with an address twice": Invalid(
        BLOCK_KIND, {"spec": {"addresses": f"10.1.0.2 {new_owner()}\n" * 2}}, "10.1.0.2 is listed twice"
    ),
    "block that starts elsewhere": Invalid(
        BLOCK_KIND,
        {"metadata": {"name": f"{NETWORK.uuid}-10-1-0-2"}, "spec": {"first": "10.1.0.2"}},
        "first: 10.1.0.2 is not a multiple of 64",
    ),
    "block of another network": Invalid(BLOCK_KIND, {"spec": {"network": new_owner()}}, "metadata.name: must be"),
    "block without the label of its network": Invalid(
        BLOCK_KIND, {"metadata": {"labels": {NETWORK_LABEL: None}}}, "=None is not the network of the spec"
    ),
    "undecodable report": Invalid(NODE_KIND, {"status": {"reportedAt": 1}}, "Expected `str`"),
    "report with a bad uuid": Invalid(NODE_KIND, {"status": {"unplugged": ["x"]}}, "unplugged[0]: 'x' is not a UUID"),
}


def put(server: FakeApiServer, kind: Kind, change: dict[str, Any]) -> dict[str, Any]:
    """Stores the changed object of the kind, as if the server had no rules, and returns it."""
    item: Any = {
        VIRTUAL_MACHINE_KIND: virtual_machine_object(VM),
        VIRTUAL_NETWORK_KIND: virtual_network_object(NETWORK),
        BLOCK_KIND: BLOCK.to_object(),
        NODE_KIND: {"metadata": {"name": NODE}, "status": msgspec.to_builtins(REPORT)},
    }[kind]
    changed = merge(msgspec.json.decode(msgspec.json.encode(item)), change)
    changed["metadata"]["uid"] = str(uuid.uuid4())
    return server.storage.put(kind, changed)


class Running(NamedTuple):
    """A manager that leads."""

    cluster: ClusterMember
    registry: CollectorRegistry


@contextlib.asynccontextmanager
async def leading(server: FakeApiServer) -> AsyncIterator[Running]:
    """Runs a manager as its process composes it; on entry it has tried every pod."""
    configuration, registry = ManagerConfiguration(), CollectorRegistry()
    async with join_cluster(configuration, KubernetesSourceSettings(), access=ClientConfig(server.url)) as cluster:
        cluster.invalid_objects.interval = 0.02
        store = KubernetesStore(cluster.client, flush_interval=0.0)
        manager = process.make_manager(configuration, cluster, store, registry)
        task = asyncio.create_task(cluster.run(lambda: process.lead(cluster, store, manager)))
        try:
            await eventually(lambda: task.done() or (cluster.is_leader and not manager.readiness()))
            yield Running(cluster, registry)
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.wait([task], timeout=DEADLINE)


@pytest.fixture(autouse=True)
def _buckets(server: FakeApiServer) -> None:
    add_node_buckets(server)


def count(running: Running, kind: Kind) -> float | None:
    return running.registry.get_sample_value("contrail_manager_invalid_objects", {"kind": kind.kind})


async def is_served(objects: ClusterObjects, server: FakeApiServer) -> None:
    """Fails unless a new pod is served."""
    uid = objects.add_pod(f"web-{uuid.uuid4().hex[:8]}")
    await eventually(lambda: uid in {name for _, name in server.storage.objects(VIRTUAL_MACHINE_KIND)})


@pytest.mark.parametrize("while_leading", [False, True])
@pytest.mark.parametrize("name", INVALIDS)
async def test_an_invalid_object_is_reported_and_everything_else_goes_on(
    server: FakeApiServer, objects: ClusterObjects, name: str, *, while_leading: bool
) -> None:
    kind, change, problem = INVALIDS[name]
    stored = {} if while_leading else put(server, kind, change)
    async with leading(server) as running:
        stored = stored or put(server, kind, change)
        await is_served(objects, server)
        await eventually(lambda: running.cluster.readiness([]) != [])
        (reason,) = running.cluster.readiness([])
        assert reason.startswith(f"{kind.kind} ")
        assert stored["metadata"]["name"] in reason
        assert problem in reason
        assert count(running, kind) == 1
        await eventually(lambda: INVALID in events_on(server, stored))
        assert problem in events_on(server, stored)[INVALID]
        server.storage.remove(kind, stored)
        await eventually(lambda: running.cluster.readiness([]) == [])
        assert count(running, kind) == 0


def events_on(server: FakeApiServer, stored: dict[str, Any]) -> dict[str, str]:
    """Messages of the events on an object, by reason."""
    events = server.storage.objects(Kind("", "v1", "Event", "events")).values()
    uid = stored["metadata"]["uid"]
    return {event["reason"]: event["message"] for event in events if event["involvedObject"]["uid"] == uid}


async def test_what_tenants_write_does_not_make_a_manager_unready(
    server: FakeApiServer, objects: ClusterObjects
) -> None:
    for number, change in enumerate(({"spec": {"uuid": "x"}}, {"spec": {"interfaces": 1}})):
        put(server, VIRTUAL_MACHINE_KIND, merge(change, {"metadata": {"namespace": "blue", "name": f"n-{number}"}}))
    async with leading(server) as running:
        await is_served(objects, server)
        assert running.cluster.readiness([]) == []


async def test_a_network_that_becomes_invalid_stays_in_effect(server: FakeApiServer, objects: ClusterObjects) -> None:
    objects.add_nad("net-a", cidr="10.1.0.0/24")
    async with leading(server) as running:
        await eventually(lambda: any(network.nad for network in stored_networks(server).values()))
        (found,) = [item for item in server.storage.objects(VIRTUAL_NETWORK_KIND).values() if "nad" in item["spec"]]
        server.storage.put(VIRTUAL_NETWORK_KIND, merge(found, {"spec": {"subnets": []}, "metadata": {"name": "x"}}))
        server.storage.put(VIRTUAL_NETWORK_KIND, merge(found, {"spec": {"subnets": [{"cidr": "x", "gateway": None}]}}))
        await eventually(lambda: len(running.cluster.readiness([])) == 2)
        uid = objects.add_pod("web-0", networks="net-a")
        await eventually(lambda: uid in stored_virtual_machines(server))
        addresses = stored_virtual_machines(server)[uid].interfaces[1].addresses
        assert [address.address for address in addresses] == ["10.1.0.2"]


async def test_an_invalid_pod_network_is_created_again(server: FakeApiServer, objects: ClusterObjects) -> None:
    async with leading(server):
        await is_served(objects, server)
    own = network_uuid(pod_network_name("k8s"))
    found = server.storage.objects(VIRTUAL_NETWORK_KIND)["", own]
    server.storage.put(VIRTUAL_NETWORK_KIND, merge(found, {"spec": {"subnets": "none"}}))
    async with leading(server) as running:
        await is_served(objects, server)
        assert running.cluster.readiness([]) == []
    assert stored_networks(server)[own].subnets


async def test_an_invalid_virtual_machine_of_a_pod_is_created_again_with_its_addresses(
    server: FakeApiServer, objects: ClusterObjects
) -> None:
    async with leading(server):
        uid = objects.add_pod("web-0")
        await eventually(lambda: uid in stored_virtual_machines(server))
    vm = stored_virtual_machines(server)[uid]
    found = server.storage.objects(VIRTUAL_MACHINE_KIND)[node_bucket(vm.node), uid]
    server.storage.put(VIRTUAL_MACHINE_KIND, merge(found, {"spec": {"uuid": "x"}}))
    async with leading(server) as running:
        await eventually(lambda: stored_virtual_machines(server) == {uid: vm})
        await eventually(lambda: running.cluster.readiness([]) == [])


def spoil_blocks(server: FakeApiServer) -> None:
    for found in list(server.storage.objects(BLOCK_KIND).values()):
        server.storage.put(BLOCK_KIND, merge(found, {"spec": {"addresses": "nonsense\n"}}))


async def served_pod(server: FakeApiServer, objects: ClusterObjects, name: str) -> VirtualMachine:
    uid = objects.add_pod(name)
    await eventually(lambda: uid in stored_virtual_machines(server))
    return stored_virtual_machines(server)[uid]


async def test_pods_get_addresses_of_other_blocks_than_an_invalid_one(
    server: FakeApiServer, objects: ClusterObjects
) -> None:
    async with leading(server) as running:
        before = await served_pod(server, objects, "before")
        spoil_blocks(server)
        after = [await served_pod(server, objects, f"after-{number}") for number in range(3)]
        await eventually(lambda: running.cluster.readiness([]) != [])
        objects.remove_pod("before")
        await eventually(lambda: before.uuid not in stored_virtual_machines(server))
    async with leading(server):
        after.append(await served_pod(server, objects, "restarted"))
    assert len({block_of(vm) for vm in after}) == 1
    assert block_of(before) not in {block_of(vm) for vm in after}


async def test_a_manager_starts_although_a_block_in_use_is_invalid_and_recovers_it_once_it_is_deleted(
    server: FakeApiServer, objects: ClusterObjects
) -> None:
    async with leading(server):
        before = [await served_pod(server, objects, f"before-{number}") for number in range(3)]
    spoil_blocks(server)
    (name,) = [name for _, name in server.storage.objects(BLOCK_KIND)]
    async with leading(server):
        after = await served_pod(server, objects, "after")
    server.remove(BLOCK_KIND, name, namespace="")
    async with leading(server) as running:
        assert running.cluster.readiness([]) == []
    vms = [*before, after]
    assert {stored_virtual_machines(server)[vm.uuid] for vm in vms} == set(vms)
    given = allocated_addresses(server)
    for vm in vms:
        (interface,) = vm.interfaces
        assert given[interface.network_uuid, interface.addresses[0].address] == interface.uuid


def block_of(vm: VirtualMachine) -> int:
    return int(ipaddress.ip_address(vm.interfaces[0].addresses[0].address)) // 64
