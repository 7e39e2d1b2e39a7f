"""Virtual routers, made by the site's provisioning: each is a node, and the address under which others reach it."""

import contextlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from contrail_config.addressing.tunnel_address import parse_tunnel_address

KIND: Final = "virtual-router"
FIELDS: Final = ("virtual_router_ip_address",)
"""Fields of a virtual router that are read."""


class VirtualRouter(NamedTuple):
    """A virtual router; `addresses` is empty if it has none that can be used."""

    name: str
    addresses: tuple[str, ...]


def read_router(item: Mapping[str, Any]) -> VirtualRouter:
    """Returns the virtual router in an object."""
    addresses: tuple[str, ...] = ()
    with contextlib.suppress(ValueError):
        addresses = (str(parse_tunnel_address(str(item.get("virtual_router_ip_address")))),)
    return VirtualRouter(str(item["fq_name"][-1]), addresses)
