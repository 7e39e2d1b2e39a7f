"""Fabric: the other nodes as network slices describe them, from the point of view of this node. Pure.

Packets to another node take IPv4 if both nodes have an IPv4 address, else IPv6, so that both sides choose the same. A
node with which this one has no family in common is left out.

The number (VNI) of a network is that in the slice of this node. What has another number is left out: nodes tell
networks apart by number alone, so it would reach a network of somebody else.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from agent_api.datapath.slice_index import SliceIndex
from contrail_config.objects import NetworkSlice, parse_endpoint
from contrail_config.reserved_macs import reserved_for

DEFAULT_PORT = 4789
"""UDP port of VXLAN, assigned by IANA."""

_LOWEST_MTU: Final = 1280
"""That of IPv6."""


class _State(msgspec.Struct, frozen=True, rename="kebab"):
    """Base of the structs, which are sent as JSON."""


class Tunnel(_State, frozen=True):
    """Where this node receives packets of networks: its addresses, at most one per family, and the UDP port."""

    addresses: tuple[str, ...]
    port: int


class RemoteNode(_State, frozen=True):
    """Another node, from whose addresses packets are accepted."""

    name: str
    addresses: tuple[str, ...]


class RemoteEndpoint(_State, frozen=True):
    """An interface on another node; `tunnel` is the address of that node."""

    mac: str
    addresses: tuple[str, ...]
    tunnel: str


class RemoteBlock(_State, frozen=True):
    """Addresses that are on another node; `tunnel` is the address of that node."""

    cidr: str
    tunnel: str


class RemoteAddress(_State, frozen=True):
    """An address of another node itself in its blocks; `tunnel` is the address of that node."""

    address: str
    tunnel: str


class PodNetwork(NamedTuple):
    """The pod network, as slices identify it."""

    uuid: str
    vni: int


class Fabric:
    """`port` is that of all nodes. `pod_network` is the uuid of the network that this node reaches without a pod."""

    def __init__(self, slices: SliceIndex, *, node: str, port: int, pod_network: str | None = None) -> None:
        self._slices = slices
        self._node = node
        self._port = port
        self._pod_network = pod_network
        self.followed = frozenset[str]() if pod_network is None else frozenset((pod_network,))
        """Networks of which slices are needed without a pod."""
        self.mtu = _LOWEST_MTU
        """MTU of index 0 while this node has no pod there."""

    @property
    def tunnel(self) -> Tunnel | None:
        """How others reach this node; None while no slice of this node says so."""
        own = (item.tunnel for item in self._slices.all() if item.node == self._node)
        addresses = max(own, default=())  # they differ only while a change of the address is being written
        return Tunnel(_by_family(addresses), self._port) if addresses else None

    @property
    def nodes(self) -> tuple[RemoteNode, ...]:
        """The other nodes that have one of the networks, by name."""
        found = {item.node: _by_family(item.tunnel) for item in self._slices.all() if item.node != self._node}
        return tuple(RemoteNode(name, addresses) for name, addresses in sorted(found.items()) if addresses)

    @property
    def pod_network(self) -> PodNetwork | None:
        """The pod network; None while this node has no address there."""
        if self._pod_network is None:
            return None
        number = self.number(self._pod_network)
        return None if number is None else PodNetwork(self._pod_network, number)

    def take_mtu(self, mtu: int | None) -> bool:
        """Takes the MTU that fits the tunnels, None if it is not known; returns whether that changes what is here."""
        before, self.mtu = self.mtu, self.mtu if mtu is None else max(mtu, _LOWEST_MTU)
        return self.mtu != before

    def is_complete(self, network_uuid: str) -> bool:
        """Returns whether all slices of the network are known."""
        return self._slices.is_complete(network_uuid)

    def lacks_own_slice(self, network_uuid: str) -> bool:
        """Returns whether other nodes have slices of the network, and this node has none yet."""
        slices = self._slices.of(network_uuid)
        return bool(slices) and self._node not in slices

    def number(self, network_uuid: str) -> int | None:
        """Returns the number of a network; None while no slice of this node says so."""
        own = self._slices.of(network_uuid).get(self._node)
        return None if own is None else own.vni

    def nodes_of_other_number(self, network_uuid: str, vni: int) -> dict[str, int]:
        """Returns the other nodes that have a network with another number than this one, by name."""
        slices = self._slices.of(network_uuid).items()
        return {node: item.vni for node, item in slices if node != self._node and item.vni != vni}

    def endpoints(self, network_uuid: str, vni: int, tunnel: Tunnel) -> tuple[RemoteEndpoint, ...]:
        """Returns the endpoints of a network on other nodes. One MAC is that of the first node by name.

        Those with reserved MACs are left out: the agent of their node refuses them.
        """
        found = dict[str, RemoteEndpoint]()
        for item, address in self._remote(network_uuid, vni, tunnel):
            for each in map(parse_endpoint, item.endpoints):
                if reserved_for(each.mac) is None:
                    found.setdefault(each.mac, RemoteEndpoint(each.mac, each.addresses, address))
        return tuple(found.values())

    def blocks(self, network_uuid: str, vni: int, tunnel: Tunnel) -> tuple[RemoteBlock, ...]:
        """Returns the blocks and single addresses of a network on other nodes. One CIDR is that of the first node."""
        found = dict[str, RemoteBlock]()
        for item, address in self._remote(network_uuid, vni, tunnel):
            for cidr in (*item.blocks, *map(_host, item.borrowed)):
                found.setdefault(cidr, RemoteBlock(cidr, address))
        return tuple(found.values())

    def own_blocks(self, network_uuid: str) -> tuple[str, ...]:
        """Returns the blocks of a network that belong to this node."""
        own = self._slices.of(network_uuid).get(self._node)
        return () if own is None else own.blocks

    def own_addresses(self, network_uuid: str) -> tuple[str, ...]:
        """Returns the addresses of this node itself in its blocks of a network."""
        own = self._slices.of(network_uuid).get(self._node)
        return () if own is None else _by_family(own.node_addresses)

    def node_addresses(self, network_uuid: str, vni: int, tunnel: Tunnel) -> tuple[RemoteAddress, ...]:
        """Returns the addresses of other nodes themselves in their blocks of a network."""
        return tuple(
            RemoteAddress(each, address)
            for item, address in self._remote(network_uuid, vni, tunnel)
            for each in _by_family(item.node_addresses)
        )

    def _remote(self, network_uuid: str, vni: int, tunnel: Tunnel) -> Iterator[tuple[NetworkSlice, str]]:
        """Yields the slices of other nodes, by name, each with the address under which this node reaches it."""
        for node, item in sorted(self._slices.of(network_uuid).items()):
            address = _common(item.tunnel, tunnel.addresses)
            if node != self._node and item.vni == vni and address is not None:
                yield item, address


def _common(theirs: Iterable[str], ours: Iterable[str]) -> str | None:
    families = {_family(address) for address in ours}
    return next((address for address in _by_family(theirs) if _family(address) in families), None)


def _by_family(addresses: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(addresses, key=_family))


def _family(address: str) -> int:
    return 6 if ":" in address else 4


def _host(address: str) -> str:
    return f"{address}/{128 if _family(address) == 6 else 32}"
