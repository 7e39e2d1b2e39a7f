"""Tunnel addresses of nodes: where other nodes send the packets of networks that span nodes.

They are the internal addresses of the Node object, the first one of each family, or those of an annotation, for nodes
whose fabric has other addresses than the API server knows.
"""

import logging
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Final

import msgspec

from contrail_config.addressing.tunnel_address import parse_tunnel_address
from contrail_config.kube.resource import Metadata, Resource

log = logging.getLogger(__name__)

TUNNEL_ADDRESSES_KEY: Final = "opencontrail.org/tunnel-addresses"
"""Annotation of a node: addresses, separated by commas."""

_INTERNAL: Final = "InternalIP"


class _Annotations(msgspec.Struct, frozen=True):
    tunnel_addresses: str | None = msgspec.field(name=TUNNEL_ADDRESSES_KEY, default=None)


class _Metadata(Metadata, frozen=True, kw_only=True):
    annotations: _Annotations = _Annotations()


class _Address(msgspec.Struct, frozen=True):
    type: str = ""
    address: str = ""


class _Status(msgspec.Struct, frozen=True):
    addresses: tuple[_Address, ...] = ()


class NodeObject(msgspec.Struct, frozen=True):
    """The part of a node that is read."""

    metadata: _Metadata
    status: _Status = _Status()


NODES: Final = Resource("", "v1", "Node", "nodes", NodeObject, namespaced=False)


def tunnel_addresses(node: NodeObject) -> tuple[str, ...]:
    """Returns the tunnel addresses, at most one per family, that of the first family first.

    An invalid annotation is logged, and has no effect.
    """
    text = node.metadata.annotations.tunnel_addresses
    if text is not None:
        try:
            return _first_of_each_family(parse_tunnel_address(part.strip()) for part in text.split(","))
        except ValueError as error:
            log.warning("node %s: %s: %s", node.metadata.name, TUNNEL_ADDRESSES_KEY, error)
    return _first_of_each_family(_usable(each.address for each in node.status.addresses if each.type == _INTERNAL))


def _usable(texts: Iterable[str]) -> Iterator[IPv4Address | IPv6Address]:
    for text in texts:
        try:
            yield parse_tunnel_address(text)
        except ValueError:
            continue  # such as a link-local address, which is no error


def _first_of_each_family(addresses: Iterable[IPv4Address | IPv6Address]) -> tuple[str, ...]:
    first = dict[int, str]()
    for address in addresses:
        first.setdefault(address.version, str(address))
    return tuple(first.values())
