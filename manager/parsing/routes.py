"""Routes that every interface of a network gets: `[{"dst": CIDR, "gw": address}]`, without `gw` on the link.

Checked as the kernel will check them, once for the network instead of at every ADD: no destination twice, and a gateway
that can be reached through the interface.
"""

from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from contrail_config.objects import Route, Subnet
from manager.parsing.addresses import parse_cidr, parse_unicast
from manager.parsing.errors import BadValueError
from manager.parsing.findings import Findings
from manager.parsing.json_text import json_list, json_object
from manager.parsing.quoting import shown


def read_routes(findings: Findings, place: str, value: Any, *, subnets: Sequence[Subnet]) -> tuple[Route, ...]:
    """The routes. What is wrong goes to `findings`, and is left out.

    `subnets`: those of the network; none if they are not known here, then gateways are not looked for in them.
    """
    entries = findings.read(place, json_list, value) or []
    routes: list[Route] = []
    for position, entry in enumerate(entries):
        route = findings.read(f"{place}[{position}]", _read_route, entry)
        if route is None:
            continue
        if problem := _conflict(route, routes, subnets):
            findings.add(f"{place}[{position}]", problem)
        else:
            routes.append(route)
    return tuple(routes)


def _read_route(entry: Any) -> Route:
    fields = {key: value for key, value in json_object(entry).items() if value is not None}
    if unknown := fields.keys() - {"dst", "gw"}:
        raise BadValueError(f"{shown(entry)}: {', '.join(sorted(unknown))} is not served, only dst and gw are")
    if "dst" not in fields:
        raise BadValueError(f"{shown(entry)} lacks dst")
    destination = parse_cidr(fields["dst"])
    if destination.prefixlen == 0:
        raise BadValueError(f"dst {destination}: the default route is the pod's choice (opencontrail.org/default-gw)")
    gateway = parse_unicast(fields["gw"]) if "gw" in fields else None
    if gateway is not None and gateway.version != destination.version:
        raise BadValueError(f"dst {destination} and gw {gateway} are of different families")
    return Route(dst=str(destination), gw=None if gateway is None else str(gateway))


def _conflict(route: Route, earlier: Sequence[Route], subnets: Sequence[Subnet]) -> str | None:
    """What is wrong with the route in its network, if anything is."""
    if route.dst in {other.dst for other in earlier}:
        return f"dst {route.dst} has a route already"
    if route.dst in {subnet.cidr for subnet in subnets}:
        return f"dst {route.dst} is the network's own subnet"
    if subnets and route.gw is not None and not _is_reachable(route.gw, earlier, subnets):
        return f"gw {route.gw} lies neither in a subnet of the network nor behind an earlier route on the link"
    return None


def _is_reachable(gateway: str, earlier: Sequence[Route], subnets: Sequence[Subnet]) -> bool:
    address = ip_address(gateway)
    on_link = [subnet.cidr for subnet in subnets] + [route.dst for route in earlier if route.gw is None]
    return any(address in ip_network(cidr) for cidr in on_link) or (address.version == 6 and address.is_link_local)
