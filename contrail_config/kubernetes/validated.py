"""Resources of our kinds whose objects are validated on reading.

Definitions of an older release, or none of the rules in them, may have admitted anything, and an object that steers
nodes must not be believed because it can be decoded. What does not validate is treated like an object that cannot be
decoded: it is skipped and reported (`invalid_objects`), and its last valid state stays in effect. Address blocks are
validated by `blocks.decode_block`.
"""

import dataclasses
import hashlib
from collections import OrderedDict
from typing import Any, Final

import msgspec

from contrail_config.addressing.subnet_table import SubnetTable
from contrail_config.addressing.tunnel_address import parse_tunnel_address
from contrail_config.kube.resource import Metadata
from contrail_config.kubernetes.constraints import problem_of
from contrail_config.kubernetes.kinds import (
    CONTRAIL_NODES,
    NAMESPACE_LABEL,
    NETWORK_LABEL,
    NETWORK_SLICES,
    NODE_LABEL,
    POD_LABEL,
    VIRTUAL_MACHINES,
    VIRTUAL_NETWORKS,
    ContrailNodeObject,
    Document,
    NetworkSliceObject,
    VirtualMachineObject,
    VirtualNetworkObject,
    label_value,
    network_slice_name,
)
from contrail_config.kubernetes.network_buckets import network_bucket
from contrail_config.kubernetes.node_buckets import is_node_bucket
from contrail_config.objects import VirtualMachine, VirtualNetwork, network_uuid, virtual_machine_name

_MAX_KNOWN: Final = 16384

_known_networks: OrderedDict[bytes, str | None] = OrderedDict()
"""Problems of networks by digest: several readers of a process check the same, and one may have 9,000 addresses."""


def network_problem(item: VirtualNetworkObject) -> str | None:
    """Returns why a network is invalid; None if it is valid."""
    return _spec_problem(item.spec) or _name_problem(item.metadata, "spec.uuid", item.spec.uuid)


def _spec_problem(network: VirtualNetwork) -> str | None:
    # A digest, since hashes of chosen numbers may be equal.
    key = hashlib.blake2b(msgspec.json.encode(network), digest_size=16).digest()
    if key not in _known_networks:
        _known_networks[key] = (
            problem_of(network)
            or _uuid_problem(network)
            or _error_of(lambda: [SubnetTable(network.subnets, family=family) for family in (4, 6)])
        )
        if len(_known_networks) > _MAX_KNOWN:
            _known_networks.popitem(last=False)
    return _known_networks[key]


def _virtual_machine_problem(item: VirtualMachineObject) -> str | None:
    """Returns the problem of one in a node bucket; others are ignored, whatever is in them."""
    if not is_node_bucket(item.metadata.namespace):
        return None
    vm = item.spec
    if vm.name != virtual_machine_name(vm.cluster, vm.namespace, vm.pod):
        return f"name: {vm.name!r} is not that of cluster {vm.cluster}, pod {vm.namespace}/{vm.pod}"
    return _label_problem(item) or _name_problem(item.metadata, "spec.uuid", vm.uuid) or problem_of(vm)


def _label_problem(item: VirtualMachineObject) -> str | None:
    vm = item.spec
    expected = {NODE_LABEL: ("node", vm.node), NAMESPACE_LABEL: ("namespace", vm.namespace), POD_LABEL: ("pod", vm.pod)}
    for label, (field, value) in expected.items():
        if (found := item.metadata.labels.get(label)) != label_value(value):
            return f"metadata.labels: {label}={found} is not the {field} of the spec, {value}"
    return None


def _slice_problem(item: NetworkSliceObject) -> str | None:
    found, labels = item.spec, item.metadata.labels
    expected = {NETWORK_LABEL: found.network_uuid, NODE_LABEL: label_value(found.node)}
    if any(labels.get(label) != value for label, value in expected.items()):
        return f"metadata.labels: must be {expected}, by its spec.networkUuid and spec.node"
    name = network_slice_name(found.network_uuid, found.node)
    return (
        _name_problem(item.metadata, "spec.networkUuid and spec.node", name)
        or problem_of(found)
        or _bucket_problem(item)
        or _error_of(lambda: [parse_tunnel_address(address) for address in found.tunnel])
    )


def _bucket_problem(item: NetworkSliceObject) -> str | None:
    expected = network_bucket(item.spec.network_uuid)
    return None if item.metadata.namespace == expected else f"metadata.namespace: must be {expected!r}, by its network"


def _report_problem(item: ContrailNodeObject) -> str | None:
    return problem_of(item.status)


def _uuid_problem(network: VirtualNetwork) -> str | None:
    """Rejects a second network of the same name: the name gives the uuid, so only one of them has it."""
    expected = network_uuid(network.fq_name)
    return None if network.uuid == expected else f"uuid: must be {expected!r}, by the name {network.name!r}"


def _name_problem(metadata: Metadata, source: str, expected: str) -> str | None:
    return None if metadata.name == expected else f"metadata.name: must be {expected!r}, by its {source}"


def _error_of(parse: Any) -> str | None:
    try:
        parse()
    except ValueError as error:
        return str(error)
    return None


def valid_network(document: Document) -> VirtualNetworkObject | None:
    """Returns the network in a document; None if it is invalid."""
    try:
        item = VirtualNetworkObject(document.metadata, msgspec.convert(document.spec, VirtualNetwork))
    except msgspec.ValidationError:
        return None
    return item if network_problem(item) is None else None


def valid_virtual_machine(document: Document) -> VirtualMachine | None:
    """Returns the virtual machine in a document; None if it is invalid."""
    try:
        item = VirtualMachineObject(document.metadata, msgspec.convert(document.spec, VirtualMachine))
    except msgspec.ValidationError:
        return None
    return item.spec if _virtual_machine_problem(item) is None else None


VALIDATED_NETWORKS: Final = dataclasses.replace(VIRTUAL_NETWORKS, check=network_problem)
VALIDATED_VIRTUAL_MACHINES: Final = dataclasses.replace(VIRTUAL_MACHINES, check=_virtual_machine_problem)
VALIDATED_REPORTS: Final = dataclasses.replace(CONTRAIL_NODES, check=_report_problem)
VALIDATED_SLICES: Final = dataclasses.replace(NETWORK_SLICES, check=_slice_problem)
