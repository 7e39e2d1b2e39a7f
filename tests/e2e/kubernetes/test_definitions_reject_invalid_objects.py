"""Our CustomResourceDefinitions on a real API server: it accepts them, and each rule rejects an invalid object."""

import copy
import uuid
from typing import Any, NamedTuple

import msgspec
import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeInvalidError
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kubernetes.blocks import AddressEntry, Block, BlockKey, PoolKey
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import (
    ADDRESS_BLOCKS,
    CONTRAIL_NODES,
    NETWORK_SLICES,
    VIRTUAL_MACHINES,
    VIRTUAL_NETWORKS,
    NodeReport,
    network_slice_object,
    virtual_machine_object,
    virtual_network_object,
)
from contrail_config.objects import Endpoint, NetworkSlice, Route
from tests.support.virtual_machines import make_pending, make_virtual_machine
from tests.support.virtual_networks import make_network, new_owner

Object = dict[str, Any]
LONG = "x" * 1025
OTHER = str(uuid.UUID(int=5))
MAC = "02:00:00:00:00:01"


class Written(msgspec.Struct, frozen=True):
    """The metadata of a written object."""

    metadata: Metadata


def a_network() -> Object:
    routes = (Route("10.9.0.0/16", "10.1.0.3"), Route("fd00:9::/32"))
    name, cidrs = f"n-{uuid.uuid4().hex[:8]}", ("10.1.0.0/24", "fd00:1::/64")
    network = make_network(name, *cidrs, excluded=("10.1.0.9", "10.1.0.64/26"), routes=routes, dns=("10.1.0.2",), vni=3)
    return as_object(virtual_network_object(network))


def a_virtual_machine() -> Object:
    return as_object(virtual_machine_object(make_virtual_machine(f"p-{uuid.uuid4().hex[:8]}")))


def a_pending_virtual_machine() -> Object:
    return as_object(virtual_machine_object(make_pending(f"p-{uuid.uuid4().hex[:8]}")))


def a_block(family: int = 4) -> Object:
    first = {4: 0x0A010000, 6: 0xFD00 << 112}[family]
    entries = {first + 2: AddressEntry(new_owner())}
    return as_object(Block(BlockKey(PoolKey(new_owner(), family), first), None, entries, (first + 2, 1e9)).to_object())


def a_slice() -> Object:
    uid, name = str(uuid.uuid4()), ("default-domain", "k8s-default", "blue")
    endpoints = (Endpoint(MAC, ("10.1.0.9", "fd00::9")).text,)
    made = NetworkSlice(uid, f"node-{uid[:8]}", name, 3, tunnel=("192.0.2.1", "fd00:9::1"), endpoints=endpoints)
    routed = {
        "blocks": ("10.1.0.0/26",),
        "borrowed": ("10.1.0.9", "fd00::9"),
        "node_addresses": ("10.1.0.2", "fd00::2"),
    }
    return as_object(network_slice_object(msgspec.structs.replace(made, **routed)))


def a_report() -> Object:
    report = NodeReport("2026-11-21T12:00:00Z", "i", {"agent": "1"}, (new_owner(),), 1, ("c",), ("e",))
    return {"metadata": {"name": f"node-{uuid.uuid4().hex[:8]}.example"}, "status": as_object(report)}


def as_object(item: Any) -> Object:
    values: Object = msgspec.json.decode(msgspec.json.encode(item))
    values.get("metadata", {}).pop("managedFields", None)
    return values


class Kind(NamedTuple):
    """A kind, and how to make a valid object."""

    resource: Resource[Any]
    make: Any


NETWORK, MACHINE = Kind(VIRTUAL_NETWORKS, a_network), Kind(VIRTUAL_MACHINES, a_virtual_machine)
PENDING = Kind(VIRTUAL_MACHINES, a_pending_virtual_machine)
BLOCK, REPORT = Kind(ADDRESS_BLOCKS, a_block), Kind(CONTRAIL_NODES, a_report)
SLICE = Kind(NETWORK_SLICES, a_slice)
BLOCK_OF_IPV6 = Kind(ADDRESS_BLOCKS, lambda: a_block(6))


class Bad(NamedTuple):
    """A change that makes an object invalid: a value at a path, and what the server's message has."""

    kind: Kind
    path: str
    value: Any
    message: str


INTERFACE = "spec.interfaces.0"
REJECTED = {
    "network uuid in upper case": Bad(NETWORK, "spec.uuid", str(uuid.uuid4()).upper(), "spec.uuid"),
    "network not named by its uuid": Bad(NETWORK, "metadata.name", "other", "metadata.name must equal spec.uuid"),
    "network without a name": Bad(NETWORK, "spec.fqName.2", "", "spec.fqName"),
    "network name of two parts": Bad(NETWORK, "spec.fqName", ["a", "b"], "spec.fqName"),
    "network without subnets": Bad(NETWORK, "spec.subnets", None, "spec.subnets"),
    "subnet that is no CIDR": Bad(NETWORK, "spec.subnets.0.cidr", "10.1.0.0", "spec.subnets[0].cidr"),
    "gateway that is no address": Bad(NETWORK, "spec.subnets.0.gateway", "10.1.0.256", "spec.subnets[0].gateway"),
    "exclusion that is no address": Bad(NETWORK, "spec.subnets.0.excluded.0", "x", "spec.subnets[0].excluded[0]"),
    "name server that is no address": Bad(NETWORK, "spec.dns.0", "dns.example", "spec.dns[0]"),
    "route without destination": Bad(NETWORK, "spec.routes.0.dst", "10.9.0.0/33", "spec.routes[0].dst"),
    "route with a bad gateway": Bad(NETWORK, "spec.routes.0.gw", "gw", "spec.routes[0].gw"),
    "MTU beyond 16 bits": Bad(NETWORK, "spec.mtu", 65536, "spec.mtu"),
    "VNI beyond 24 bits": Bad(NETWORK, "spec.vni", 2**24, "spec.vni"),
    "NAD with a long name": Bad(NETWORK, "spec.nad", f"shop/{LONG}", "spec.nad"),
    "NAD without a namespace": Bad(NETWORK, "spec.nad", "blue", "spec.nad"),
    "network of a bad namespace": Bad(NETWORK, "spec.namespace", "a/b", "spec.namespace"),
    "too many subnets": Bad(NETWORK, "spec.subnets", [{"cidr": "10.0.0.0/8", "gateway": None}] * 1025, "spec.subnets"),
    "virtual machine not named by its uuid": Bad(MACHINE, "metadata.name", "other", "must equal spec.uuid"),
    "virtual machine with a bad uuid": Bad(MACHINE, "spec.uuid", "1", "spec.uuid"),
    "virtual machine with another's name": Bad(MACHINE, "spec.name", "k8s__shop__db", "spec.name must be that of"),
    "virtual machine of a bad namespace": Bad(MACHINE, "spec.namespace", "a/b", "spec.namespace"),
    "virtual machine of a bad pod": Bad(MACHINE, "spec.pod", "../x", "spec.pod"),
    "virtual machine of a bad node": Bad(MACHINE, "spec.node", "Node 1", "spec.node"),
    "virtual machine without a cluster": Bad(MACHINE, "spec.cluster", "", "spec.cluster"),
    "virtual machine without a project": Bad(MACHINE, "spec.project", "", "spec.project"),
    "virtual machine with a long hash": Bad(MACHINE, "spec.configHash", LONG, "spec.configHash"),
    "interface uuid": Bad(MACHINE, f"{INTERFACE}.uuid", "1", "spec.interfaces[0].uuid"),
    "interface MAC": Bad(MACHINE, f"{INTERFACE}.mac", "02:00:00:00:00", "spec.interfaces[0].mac"),
    "interface network": Bad(MACHINE, f"{INTERFACE}.networkUuid", "n", "spec.interfaces[0].networkUuid"),
    "interface network name": Bad(MACHINE, f"{INTERFACE}.network.0", "", "spec.interfaces[0].network"),
    "interface NAD": Bad(MACHINE, f"{INTERFACE}.nad", "../blue", "spec.interfaces[0].nad"),
    "interface MTU": Bad(MACHINE, f"{INTERFACE}.mtu", -1, "spec.interfaces[0].mtu"),
    "interface name": Bad(MACHINE, f"{INTERFACE}.interface", "x" * 16, "spec.interfaces[0].interface"),
    "interface attachment": Bad(MACHINE, f"{INTERFACE}.attachment", "x" * 16, "spec.interfaces[0].attachment"),
    "interface config name": Bad(MACHINE, f"{INTERFACE}.configName", LONG, "spec.interfaces[0].configName"),
    "interface default gateway": Bad(MACHINE, f"{INTERFACE}.defaultGw", "maybe", "spec.interfaces[0].defaultGw"),
    "interface address": Bad(MACHINE, f"{INTERFACE}.addresses.0.address", "10.1", "addresses[0].address"),
    "interface prefix length": Bad(MACHINE, f"{INTERFACE}.addresses.0.prefixLength", 129, "prefixLength"),
    "interface gateway": Bad(MACHINE, f"{INTERFACE}.addresses.0.gateway", "gw", "addresses[0].gateway"),
    "interface gateway of the subnet": Bad(
        MACHINE, f"{INTERFACE}.addresses.0.subnetGateway", "gw", "addresses[0].subnetGateway"
    ),
    "interface VNI": Bad(MACHINE, f"{INTERFACE}.vni", 2**24, "spec.interfaces[0].vni"),
    "three addresses": Bad(
        MACHINE, f"{INTERFACE}.addresses", [{"address": "10.1.0.9", "prefixLength": 24}] * 3, "addresses"
    ),
    "reason that is no word": Bad(PENDING, "spec.pending.reason", "not found", "spec.pending.reason"),
    "reason without a message": Bad(PENDING, "spec.pending.message", None, "spec.pending.message"),
    "reason with a long message": Bad(PENDING, "spec.pending.message", LONG, "spec.pending.message"),
    "block not named by its address": Bad(BLOCK, "spec.first", "10.1.0.64", "metadata.name must be derived"),
    "block not named by its network": Bad(BLOCK, "spec.network", OTHER, "metadata.name must be derived"),
    "IPv6 block not named by its network": Bad(BLOCK_OF_IPV6, "spec.network", OTHER, "metadata.name"),
    "block of a bad network": Bad(BLOCK, "spec.network", "n", "spec.network"),
    "block of a bad address": Bad(BLOCK, "spec.first", "10.1", "spec.first"),
    "block with a bad last address": Bad(BLOCK, "spec.lastGiven.address", "x", "spec.lastGiven.address"),
    "block of a bad node": Bad(BLOCK, "spec.node", "Node 1", "spec.node"),
    "block that is too long": Bad(BLOCK, "spec.addresses", "x" * 32769, "spec.addresses"),
    "slice of another network": Bad(SLICE, "spec.networkUuid", OTHER, "metadata.name must be derived"),
    "slice of a bad node": Bad(SLICE, "spec.node", "Node 1", "spec.node"),
    "slice without a network name": Bad(SLICE, "spec.network.0", "", "spec.network"),
    "slice without a VNI": Bad(SLICE, "spec.vni", 0, "spec.vni"),
    "slice of another forwarding mode": Bad(SLICE, "spec.forwardingMode", "l2", "spec.forwardingMode"),
    "slice with a bad tunnel address": Bad(SLICE, "spec.tunnel.0", "x", "spec.tunnel[0]"),
    "slice with three tunnel addresses": Bad(SLICE, "spec.tunnel", ["192.0.2.1"] * 3, "spec.tunnel"),
    "endpoint with a bad MAC": Bad(SLICE, "spec.endpoints.0", "02 10.1.0.9", "spec.endpoints[0]"),
    "endpoint with a bad address": Bad(SLICE, "spec.endpoints.0", f"{MAC} x", "spec.endpoints[0]"),
    "endpoint with three addresses": Bad(SLICE, "spec.endpoints.0", f"{MAC}{' 10.1.0.9' * 3}", "spec.endpoints[0]"),
    "slice with a bad block": Bad(SLICE, "spec.blocks.0", "10.1.0.0", "spec.blocks[0]"),
    "slice with a bad borrowed address": Bad(SLICE, "spec.borrowed.0", "10.1", "spec.borrowed[0]"),
    "slice with a bad node address": Bad(SLICE, "spec.nodeAddresses.0", "10.1", "spec.nodeAddresses[0]"),
    "report of a bad uuid": Bad(REPORT, "status.unplugged.0", "a", "status.unplugged[0]"),
    "report of too many ports": Bad(REPORT, "status.unplugged", [new_owner()] * 1025, "status.unplugged"),
    "report of a negative number": Bad(REPORT, "status.pendingDeletes", -1, "status.pendingDeletes"),
    "report with a long error": Bad(REPORT, "status.lastErrors.0", LONG, "status.lastErrors[0]"),
    "report with too many errors": Bad(REPORT, "status.lastErrors", ["e"] * 9, "status.lastErrors"),
    "report with a long conflict": Bad(REPORT, "status.conflicts.0", LONG, "status.conflicts[0]"),
    "report of too many versions": Bad(
        REPORT, "status.versions", {str(number): "1" for number in range(17)}, "status.versions"
    ),
    "report of a long instance": Bad(REPORT, "status.instance", LONG, "status.instance"),
    "report without a time": Bad(REPORT, "status.reportedAt", None, "status.reportedAt"),
}
IMMUTABLE = {
    "name of a network": Bad(NETWORK, "spec.fqName.2", "other", "spec.fqName is immutable"),
    "uuid of a network": Bad(NETWORK, "spec.uuid", OTHER, "metadata.name must equal spec.uuid"),
    "network of a block": Bad(BLOCK_OF_IPV6, "spec.network", OTHER, "spec.network is immutable"),
    "first address of a block": Bad(BLOCK_OF_IPV6, "spec.first", "fd00::40", "spec.first is immutable"),
    "node of a slice": Bad(SLICE, "spec.node", "other", "spec.node is immutable"),
    "uuid of a virtual machine": Bad(MACHINE, "spec.uuid", OTHER, "must equal spec.uuid"),
    "pod of a virtual machine": Bad(
        MACHINE, "spec", {"pod": "other", "name": "k8s__default__other"}, "spec.name, and what it is derived from"
    ),
    "namespace of a virtual machine": Bad(
        MACHINE, "spec", {"namespace": "other", "name": "k8s__other__p"}, "spec.name"
    ),
}


@pytest.fixture(autouse=True)
async def _definitions(client: KubeClient) -> None:
    await ensure_crds(client)


def changed(item: Object, path: str, value: Any) -> Object:
    """A copy of the object with the value at the path; None removes it, a dict is merged."""
    item = copy.deepcopy(item)
    *parents, last = path.split(".")
    part: Any = item
    for parent in parents:
        part = part[int(parent) if parent.isdigit() else parent]
    key: Any = int(last) if last.isdigit() else last
    if value is None:
        del part[key]
    elif isinstance(value, dict) and key == "spec":
        part[key].update(value)
    elif isinstance(part, list) or value != part.get(key):
        part[key] = value
    return item


async def create(client: KubeClient, kind: Kind, item: Object, namespace: str) -> Metadata:
    resource = as_written(kind.resource)
    where = namespace if resource.namespaced else ""
    item["metadata"].pop("namespace", None)
    return (await client.create(resource, item, namespace=where)).metadata


def as_written(resource: Resource[Any]) -> Resource[Written]:
    return Resource(
        resource.group, resource.version, resource.kind, resource.plural, Written, namespaced=resource.namespaced
    )


@pytest.mark.parametrize(
    "kind", [NETWORK, MACHINE, PENDING, BLOCK, BLOCK_OF_IPV6, SLICE, REPORT], ids=lambda kind: kind.resource.kind
)
async def test_a_valid_object_is_accepted_and_can_be_replaced(client: KubeClient, kind: Kind, namespace: str) -> None:
    item = kind.make()
    metadata = await create(client, kind, item, namespace)
    item["metadata"] |= {"resourceVersion": metadata.resource_version, "labels": {"changed": "yes"}}
    where = metadata.namespace
    await client.replace(as_written(kind.resource), metadata.name, item, namespace=where)
    await client.delete(as_written(kind.resource), metadata.name, namespace=where)


@pytest.mark.parametrize("name", REJECTED)
async def test_an_invalid_object_is_rejected(client: KubeClient, namespace: str, name: str) -> None:
    bad = REJECTED[name]
    with pytest.raises(KubeInvalidError) as error:
        await create(client, bad.kind, changed(bad.kind.make(), bad.path, bad.value), namespace)
    assert bad.message in str(error.value)


@pytest.mark.parametrize("name", IMMUTABLE)
async def test_what_never_changes_cannot_be_changed(client: KubeClient, namespace: str, name: str) -> None:
    bad = IMMUTABLE[name]
    item = bad.kind.make()
    metadata = await create(client, bad.kind, item, namespace)
    item["metadata"]["resourceVersion"] = metadata.resource_version
    with pytest.raises(KubeInvalidError) as error:
        await client.replace(
            as_written(bad.kind.resource),
            metadata.name,
            changed(item, bad.path, bad.value),
            namespace=metadata.namespace,
        )
    assert bad.message in str(error.value)
