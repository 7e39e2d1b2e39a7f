"""Routes of every interface of a network: `[{"dst": CIDR, "gw": address}]`; a route without `gw` is on-link.

The kernel's checks are made here, once per network instead of at every ADD: each destination is unique, and each
gateway is reachable through the interface.
"""

from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from contrail_config.objects import Route, Subnet
from manager.parsing.addresses import parse_cidr, parse_unicast
from manager.parsing.cidr_table import CidrTable
from manager.parsing.errors import BadValueError
from manager.parsing.json_text import json_list, json_object
from manager.parsing.quoting import quoted
from manager.parsing.validation import ValidationErrors


def parse_routes(
    errors: ValidationErrors, location: str, value: Any, *, subnets: Sequence[Subnet]
) -> tuple[Route, ...]:
    """Returns the valid routes and adds the errors of the others.

    `subnets` are those of the network; if they are unknown (empty), the gateways' reachability is not checked.
    """
    network = _RoutedNetwork(subnets)
    routes = (
        errors.parse(f"{location}[{position}]", network.add_route, entry)
        for position, entry in enumerate(errors.parse(location, json_list, value) or [])
    )
    return tuple(route for route in routes if route is not None)


class _RoutedNetwork:
    """Destinations of a network's routes so far, and the CIDRs on its link."""

    def __init__(self, subnets: Sequence[Subnet]) -> None:
        self._destinations = {subnet.cidr: "is the network's own subnet" for subnet in subnets}
        self._has_subnets = bool(subnets)
        self._on_link = CidrTable[str]()
        for subnet in subnets:
            self._on_link.add(ip_network(subnet.cidr), subnet.cidr)

    def add_route(self, entry: Any) -> Route:
        """Returns the entry's route if it is valid after the routes before it. Raises BadValueError."""
        route = _read_route(entry)
        if problem := self._destinations.get(route.dst):
            raise BadValueError(f"dst {route.dst} {problem}")
        if route.gw is None:
            # Routes are installed in order, so only later routes can use this one to reach a gateway.
            self._on_link.add(ip_network(route.dst), route.dst)
        elif self._has_subnets and not self._is_reachable(route.gw):
            problem = "is neither in a subnet of the network nor covered by an earlier on-link route"
            raise BadValueError(f"gw {route.gw} {problem}")
        self._destinations[route.dst] = "already has a route"
        return route

    def _is_reachable(self, gateway: str) -> bool:
        address = ip_address(gateway)
        # Link-local IPv6 addresses are always on-link.
        return self._on_link.find(address) is not None or (address.version == 6 and address.is_link_local)


def _read_route(entry: Any) -> Route:
    fields = {key: value for key, value in json_object(entry).items() if value is not None}
    if unknown := fields.keys() - {"dst", "gw"}:
        raise BadValueError(f"{quoted(entry)}: {', '.join(sorted(unknown))} is not supported, only dst and gw are")
    if "dst" not in fields:
        raise BadValueError(f"{quoted(entry)}: dst is missing")
    destination = parse_cidr(fields["dst"])
    if destination.prefixlen == 0:
        raise BadValueError(
            f"dst {destination}: a network must not set the default route: use opencontrail.org/default-gw on the pod"
        )
    gateway = parse_unicast(fields["gw"]) if "gw" in fields else None
    if gateway is not None and gateway.version != destination.version:
        raise BadValueError(f"dst {destination} and gw {gateway} are of different address families")
    return Route(dst=str(destination), gw=None if gateway is None else str(gateway))
