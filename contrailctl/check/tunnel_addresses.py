"""Finds tunnel addresses that cannot work: of two nodes, or in the subnets of the pod network. Pure.

Nodes that were made from one image may all have the same first address, such as 10.0.2.15 behind NAT. Each then sends
to itself what is for the others. Of this, its kernel shows only that it rejects routes by an address of its own.
"""

from collections import defaultdict
from collections.abc import Iterator
from ipaddress import ip_address, ip_network

from contrail_config.kubernetes.expected_slices import StoredObjects
from contrailctl.check.findings import Fault, Finding

_SHARED = "give each node a --node-ip of its own (kubelet), or the annotation opencontrail.org/tunnel-addresses"
_IN_POD_NETWORK = (
    "give the pod network other subnets, or the node an address elsewhere: what is sent there goes to a pod once a "
    "node has the block with this address"
)


def tunnel_address_findings(stored: StoredObjects) -> Iterator[Finding]:
    """Yields what is wrong with the addresses of nodes that have an agent or pods."""
    subnets = list(_subnets_of_pod_networks(stored))
    nodes = _nodes_by_address(stored)
    for address, named in sorted(nodes.items()):
        for node in named:
            what = f"tunnel address {address} of the node"
            others = ", ".join(each for each in named if each != node)
            if others:
                yield Finding(node, "", Fault.WRONG, what, f"also that of {others}", advice=_SHARED)
            for subnet, network in subnets:
                if ip_address(address) in ip_network(subnet):
                    yield Finding(node, "", Fault.WRONG, what, f"in {subnet} of {network}", advice=_IN_POD_NETWORK)


def _nodes_by_address(stored: StoredObjects) -> dict[str, list[str]]:
    found = defaultdict[str, list[str]](list)
    for node in sorted(stored.used_nodes | stored.reports.keys()):
        for address in stored.tunnels.get(node, ()):
            found[address].append(node)
    return found


def _subnets_of_pod_networks(stored: StoredObjects) -> Iterator[tuple[str, str]]:
    """Yields subnet and network: of networks with subnets of their own it does not matter, as they are isolated."""
    interfaces = (interface for each in stored.virtual_machines for interface in each.interfaces)
    uuids = {each.network_uuid for each in interfaces if each.pod_network is not None}
    for network in stored.networks:
        if network.uuid in uuids:
            yield from ((subnet.cidr, network.name) for subnet in network.subnets)
