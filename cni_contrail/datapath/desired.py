"""Desired state of a node's virtual networks, as plain data.

A state is whole: what it does not name is removed from the kernel.
"""

from __future__ import annotations

from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address

GATEWAY_MAC = "00:00:5e:00:01:00"
"""MAC of every gateway on every node, so that a pod that moves keeps its neighbour entry; the Contrail vrouter's."""


UPLINK = "up"
"""Link from a network's namespace to the node's, if packets may leave the network."""


class LocalPort(NamedTuple):
    """Host end of a pod's interface: what may be sent from it. `addresses` have no prefix length."""

    link: str
    mac: str
    addresses: tuple[str, ...]


class Network(NamedTuple):
    """A virtual network on this node. `gateways` have the prefix lengths of their subnets; `mtu` is in bytes.

    `snat`: its pods reach what is outside, with the node's address. `forwarding`: what is outside reaches its subnets.
    """

    vni: int
    mtu: int
    gateways: tuple[Address, ...]
    ports: tuple[LocalPort, ...]
    snat: bool = False
    forwarding: bool = False


class RoutedPort(NamedTuple):
    """Host end of a pod's interface of index 0, in the node's own namespace. Addresses have no prefix length.

    `gateways` are the addresses by which the pod reaches everything else; `mac` and `addresses` are the pod's.
    """

    link: str
    mac: str
    addresses: tuple[str, ...]
    gateways: tuple[str, ...]


class Masquerade(NamedTuple):
    """Pods appear with the node's address outside the cluster. `excluded` are the networks (CIDRs) inside it."""

    excluded: tuple[str, ...]


class Routed(NamedTuple):
    """The routed ports of this node; `masquerade` is None if addresses of pods are valid outside, too."""

    ports: tuple[RoutedPort, ...]
    masquerade: Masquerade | None
