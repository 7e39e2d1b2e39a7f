"""Entries of a network for what is on other nodes: endpoints, and blocks of addresses. Pure.

An endpoint is a MAC behind the tunnel to its node, and a neighbour for each address. A block is a route by its node:
a gateway that is a neighbour with the node's MAC, behind the tunnel like an endpoint.

What is on this node takes precedence: a pod that has just moved here is still listed elsewhere, and one may have an
address in a block of another node, so that it needs a route of its own. Of two endpoints with one MAC or one address
the first takes precedence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from cni_contrail.addresses import FULL_LENGTH, family_of, network_of
from cni_contrail.datapath.desired import Network, RemoteEndpoint, Underlay
from cni_contrail.datapath.entries import ON_LINK, Behind, Entries
from cni_contrail.datapath.reserved_macs import mac_problem
from cni_contrail.datapath.tunnel_names import bridged_tunnel, node_gateway, node_mac
from cni_contrail.link.named_tuple import NamedTuple


class Held(NamedTuple):
    """MACs and addresses of ports that exist and that the desired state does not name: an ADD may be creating them."""

    macs: frozenset[str]
    addresses: frozenset[str]


def held_by(unknown: frozenset[str], found: Entries) -> Held:
    """Returns what the unknown ports have."""
    macs = frozenset(mac for mac, link in found.forwarding.items() if link in unknown)
    addresses = (address for address, mac in found.neighbours.items() if mac in macs) if macs else ()
    return Held(macs, frozenset(addresses))


def with_remotes(local: Entries, network: Network, underlay: Underlay, held: Held) -> Entries:
    """Returns the entries with those of all remote endpoints and blocks that this node has an address to reach.

    What is held stays where it is. An endpoint with a reserved MAC has none.
    """
    forwarding: dict[str, str] = {}
    neighbours: dict[str, str] = {}
    destinations: dict[Behind, str] = {}
    for remote in [*_reachable(network.remotes, underlay), *_nodes(network, underlay)]:
        if remote.mac in local.forwarding or remote.mac in held.macs:
            continue
        tunnel = bridged_tunnel(remote.tunnel)
        if forwarding.setdefault(remote.mac, tunnel) == tunnel:
            destinations.setdefault(Behind(tunnel, remote.mac), remote.tunnel)
        for address in remote.addresses:
            if address not in held.addresses:
                neighbours.setdefault(address, remote.mac)
    routes = {block.cidr: node_gateway(block.tunnel) for block in network.blocks if underlay.local(block.tunnel)}
    return local._replace(
        forwarding=forwarding | local.forwarding,
        neighbours=neighbours | local.neighbours,
        destinations=destinations,
        routes=routes | _routes_within(routes, held.addresses.union(local.neighbours)),
    )


def no_address_for(nodes: Iterable[str], underlay: Underlay) -> str | None:
    """Returns which nodes cannot be reached, since this one has no address of their family; None if all can be."""
    missing = sorted(node for node in nodes if underlay.local(node) is None)
    if not missing:
        return None
    more = f" and {len(missing) - 1} more nodes" if len(missing) > 1 else ""
    version = 6 if ":" in missing[0] else 4
    return f"no tunnel to {missing[0]}{more}: this node has no IPv{version} tunnel address"


def _routes_within(blocks: Collection[str], addresses: Iterable[str]) -> dict[str, str]:
    """Returns routes on the link to those addresses of this node that are in blocks of others."""
    lengths = {(family_of(cidr), int(cidr.rpartition("/")[2])) for cidr in blocks}
    return {
        f"{address}/{FULL_LENGTH[family]}": ON_LINK
        for address in (addresses if lengths else ())
        for family, length in lengths
        if family == family_of(address) and network_of(address, length) in blocks
    }


def _reachable(remotes: tuple[RemoteEndpoint, ...], underlay: Underlay) -> Iterator[RemoteEndpoint]:
    families = {":" in address for address in underlay.addresses}
    return (each for each in remotes if (":" in each.tunnel) in families and mac_problem(each.mac) is None)


def _nodes(network: Network, underlay: Underlay) -> Iterator[RemoteEndpoint]:
    """Yields the nodes that blocks are on, as endpoints."""
    for node in sorted({block.tunnel for block in network.blocks if underlay.local(block.tunnel)}):
        yield RemoteEndpoint(node_mac(node), (node_gateway(node),), node)
