"""Namespaces of host ends: the calling thread's own, and those of virtual networks.

A network's namespace is `contrail-<vni>` below a directory, by default /run/netns, where `ip netns` finds it, too. In
an `InterfacePlan` it is named; an empty name is the host's own namespace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType

from cni_contrail.link.errors import NetnsError
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.netns import open_netns
from cni_contrail.link.plan import InterfacePlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

DIRECTORY = "/run/netns"
NO_NETWORKS: Mapping[str, int] = {}
_PREFIX = "contrail-"
_MAX_DIGITS = 8  # a VNI has 24 bits


class HostSides:
    """rtnetlink sockets in the host's namespace and in those of networks, opened when first needed.

    `networks` are descriptors of the namespaces by name. Not thread-safe.
    """

    __slots__ = ("_networks", "_sockets")

    def __init__(self, networks: Mapping[str, int]) -> None:
        self._networks = networks
        self._sockets: dict[str, RouteSocket] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for kernel in self._sockets.values():
            kernel.__exit__(kind, error, trace)

    def of(self, namespace: str) -> RouteSocket:
        """Returns the socket of a namespace; raises NetnsError."""
        kernel = self._sockets.get(namespace)
        if kernel is None:
            kernel = open_route_socket(self._networks[namespace]) if namespace else RouteSocket()
            self._sockets[namespace] = kernel
        return kernel

    def split(self, plans: Sequence[InterfacePlan]) -> Iterator[tuple[RouteSocket, list[InterfacePlan]]]:
        """Yields the plans in their order, those of one namespace in a row together, each with its socket."""
        start = 0
        for position, plan in enumerate(plans):
            following = plans[position + 1].namespace if position + 1 < len(plans) else None
            if plan.namespace != following:
                yield self.of(plan.namespace), list(plans[start : position + 1])
                start = position + 1


def is_network_name(name: str) -> bool:
    """Returns whether this is the name of a network's namespace."""
    number = name.removeprefix(_PREFIX)
    return name != number and number.isascii() and number.isdigit() and number[0] != "0" and len(number) <= _MAX_DIGITS


def open_network(namespace: str, directory: str) -> int | None:
    """Returns a descriptor of a network's namespace, which the caller closes.

    None if it does not exist any more: its links are gone with it.
    """
    try:
        return open_netns(f"{directory}/{namespace}")
    except NetnsError:
        return None


def open_host_side(namespace: str, directory: str) -> RouteSocket | None:
    """Opens a socket in the host's or a network's namespace; None if the network's does not exist any more."""
    if not namespace:
        return RouteSocket()
    netns = open_network(namespace, directory)
    if netns is None:
        return None
    try:
        return open_route_socket(netns)
    finally:
        os.close(netns)


def network_namespaces(directory: str) -> list[str]:
    """Returns the names of the networks' namespaces, in no order."""
    try:
        return [name for name in os.listdir(directory) if is_network_name(name)]
    except FileNotFoundError:
        return []
