"""Desired state of a node's virtual networks, as plain data.

A state is whole: what it does not name is removed from the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address

GATEWAY_MAC = "00:00:5e:00:01:00"
"""MAC of every gateway on every node, so that a pod that moves keeps its neighbour entry; the Contrail vrouter's."""


UPLINK = "up"
"""Link from a network's namespace to the node's, if packets may leave the network."""


class LocalPort(NamedTuple):
    """Host end of a pod's interface: what may be sent from it. `addresses` have no prefix length.

    `mtu` is what ADD has given both ends, in bytes, 0 if that is not known.
    """

    link: str
    mac: str
    addresses: tuple[str, ...]
    mtu: int = 0


class RemoteEndpoint(NamedTuple):
    """Interface of a pod on another node, whose packets go to the address `tunnel` of that node."""

    mac: str
    addresses: tuple[str, ...]
    tunnel: str


class RemoteBlock(NamedTuple):
    """Addresses (CIDR) of pods on another node, whose packets are routed to the address `tunnel` of that node."""

    cidr: str
    tunnel: str


class RemoteAddress(NamedTuple):
    """Address of another node itself in its blocks, whose packets are routed to the address `tunnel` of that node."""

    address: str
    tunnel: str


class Network(NamedTuple):
    """A virtual network on this node. `gateways` have the prefix lengths of their subnets.

    `mtu` is the lowest of its pods, in bytes, `largest_mtu` the highest if that is another.

    `snat`: its pods reach what is outside, with the node's address. `forwarding`: what is outside reaches its subnets.
    Pods on other nodes are `remotes`, or addresses in `blocks`; unless they are complete, no known one is removed.
    `is_routed`: pods reach even their own subnets by the gateways.
    """

    vni: int
    mtu: int
    gateways: tuple[Address, ...]
    ports: tuple[LocalPort, ...]
    snat: bool = False
    forwarding: bool = False
    remotes: tuple[RemoteEndpoint, ...] = ()
    blocks: tuple[RemoteBlock, ...] = ()
    is_complete: bool = True
    is_routed: bool = False
    largest_mtu: int | None = None

    @property
    def longest_packet(self) -> int:
        """Bytes of the longest packet of its pods."""
        return self.largest_mtu or self.mtu

    @property
    def routes_between_pods(self) -> bool:
        """Whether the bridge routes packets between pods: by gateways, or to blocks on other nodes."""
        return self.is_routed or bool(self.blocks)

    def nodes(self) -> frozenset[str]:
        """Returns the tunnel addresses of all nodes that have something of this network."""
        return frozenset([remote.tunnel for remote in self.remotes] + [block.tunnel for block in self.blocks])


class RoutedPort(NamedTuple):
    """Host end of a pod's interface of index 0, in the node's own namespace. Addresses have no prefix length.

    `gateways` are the addresses by which the pod reaches everything else; `mac` and `addresses` are the pod's.
    `network` is the number of the port's network, which is isolated from all others; 0 is the cluster's. `mtu` as in
    `LocalPort`.
    """

    link: str
    mac: str
    addresses: tuple[str, ...]
    gateways: tuple[str, ...]
    network: int = 0
    mtu: int = 0


class Masquerade(NamedTuple):
    """Pods appear with the node's address outside the cluster. `excluded` are the networks (CIDRs) inside it."""

    excluded: tuple[str, ...]
    is_known: bool = True


PENDING = Masquerade((), is_known=False)
"""A masquerade that is not known yet: no connection to the outside may begin."""


class Routed(NamedTuple):
    """The routed ports of this node; `masquerade` is None if addresses of pods are valid outside, too."""

    ports: tuple[RoutedPort, ...]
    masquerade: Masquerade | None


class RoutedNetwork(NamedTuple):
    """Index 0 on other nodes: `remotes` are the addresses of their pods, and of single ones that moved there.

    `own_blocks` (CIDRs) are addresses of this node's pods. `addresses` are those of the node itself in them, by which
    it reaches pods on other nodes, `node_addresses` those of other nodes. Unless `remotes` are complete, no known one
    is removed.
    """

    vni: int
    mtu: int
    addresses: tuple[str, ...]
    own_blocks: tuple[str, ...]
    remotes: tuple[RemoteBlock, ...]
    is_complete: bool = True
    node_addresses: tuple[RemoteAddress, ...] = ()

    @property
    def longest_packet(self) -> int:
        """Bytes of the longest packet of its pods."""
        return self.mtu

    def nodes(self) -> frozenset[str]:
        """Returns the tunnel addresses of all nodes that have something of index 0."""
        return frozenset(remote.tunnel for remote in self.remotes)


class Underlay(NamedTuple):
    """The network between the nodes, which carries tunnels: this node's addresses, one for each family, and UDP port.

    Without addresses there are no tunnels. Only packets from `peers` are accepted, the addresses of other nodes.
    `routed` is index 0 on other nodes, None if it is only on this one.
    """

    addresses: tuple[str, ...]
    port: int
    peers: frozenset[str]
    routed: RoutedNetwork | None = None

    def local(self, peer: str) -> str | None:
        """Returns this node's address of the family of a peer's, None without one."""
        return next((each for each in self.addresses if (":" in each) == (":" in peer)), None)

    def used_addresses(self, nodes: Iterable[str]) -> list[str]:
        """Returns this node's addresses from which it reaches these nodes; the first one in any case."""
        used = {local for node in nodes if (local := self.local(node)) is not None}
        return [each for each in self.addresses if each in used or each == self.addresses[0]]
