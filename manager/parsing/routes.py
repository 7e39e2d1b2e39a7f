"""Routes that every interface of a network gets: `[{"dst": CIDR, "gw": address}]`, without `gw` on the link.

Checked as the kernel will check them, once for the network instead of at every ADD: no destination twice, and a gateway
that can be reached through the interface.
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


def parse_routes(errors: ValidationErrors, place: str, value: Any, *, subnets: Sequence[Subnet]) -> tuple[Route, ...]:
    """The routes. What is wrong goes to `findings`, and is left out.

    `subnets`: those of the network; none if they are not known here, then gateways are not looked for in them.
    """
    entries = errors.parse(place, json_list, value) or []
    network = _RoutedNetwork(subnets)
    routes = (errors.parse(f"{place}[{position}]", network.take, entry) for position, entry in enumerate(entries))
    return tuple(route for route in routes if route is not None)


class _RoutedNetwork:
    """What the routes of a network lead to so far, and what lies on its link."""

    def __init__(self, subnets: Sequence[Subnet]) -> None:
        self._destinations = {subnet.cidr: "is the network's own subnet" for subnet in subnets}
        self._is_known = bool(subnets)
        self._on_link = CidrTable[str]()
        for subnet in subnets:
            self._on_link.add(ip_network(subnet.cidr), subnet.cidr)

    def take(self, entry: Any) -> Route:
        """Returns the route that the entry states, if it can be one after those before. Raises BadValueError."""
        route = _read_route(entry)
        if problem := self._destinations.get(route.dst):
            raise BadValueError(f"dst {route.dst} {problem}")
        if route.gw is None:
            self._on_link.add(ip_network(route.dst), route.dst)
        elif self._is_known and not self._is_reachable(route.gw):
            problem = "lies neither in a subnet of the network nor behind an earlier route on the link"
            raise BadValueError(f"gw {route.gw} {problem}")
        self._destinations[route.dst] = "has a route already"
        return route

    def _is_reachable(self, gateway: str) -> bool:
        address = ip_address(gateway)
        return self._on_link.find(address) is not None or (address.version == 6 and address.is_link_local)


def _read_route(entry: Any) -> Route:
    fields = {key: value for key, value in json_object(entry).items() if value is not None}
    if unknown := fields.keys() - {"dst", "gw"}:
        raise BadValueError(f"{quoted(entry)}: {', '.join(sorted(unknown))} is not served, only dst and gw are")
    if "dst" not in fields:
        raise BadValueError(f"{quoted(entry)} lacks dst")
    destination = parse_cidr(fields["dst"])
    if destination.prefixlen == 0:
        raise BadValueError(f"dst {destination}: the default route is the pod's choice (opencontrail.org/default-gw)")
    gateway = parse_unicast(fields["gw"]) if "gw" in fields else None
    if gateway is not None and gateway.version != destination.version:
        raise BadValueError(f"dst {destination} and gw {gateway} are of different families")
    return Route(dst=str(destination), gw=None if gateway is None else str(gateway))
