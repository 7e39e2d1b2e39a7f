"""What the configuration of a NAD says to our plugin about its network: CNI's own keys, and the section `contrail`.

A plugin that serves networks from a controller must not take `spec.config` for its own data (multi-network standard
v1.3, 4.4), so subnets stand in annotations, and addresses asked of `ipam` here are refused rather than overlooked.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from contrail_config.objects import Route, Subnet
from manager.parsing.addresses import parse_address
from manager.parsing.errors import BadValueError
from manager.parsing.json_text import json_list, json_object
from manager.parsing.limits import check_count
from manager.parsing.netconf import check_ipv6_mtu, parse_mtu
from manager.parsing.quoting import quoted
from manager.parsing.routes import parse_routes
from manager.parsing.validation import ValidationErrors

_CONFIG = "spec.config"


class NadSettings(NamedTuple):
    """Name servers, MTU in bytes (None: the default) and routes."""

    dns: tuple[str, ...]
    mtu: int | None
    routes: tuple[Route, ...]


def parse_nad_settings(
    errors: ValidationErrors, own: Mapping[str, Any], *, nad: str, subnets: Sequence[Subnet], default_mtu: int
) -> NadSettings:
    """The settings; `own` is what the configuration says to our plugin. What is wrong goes to `findings`."""
    for key in ("ipam", "ipMasq"):
        errors.parse(f"{_CONFIG}, {key}", _refuse_request, own.get(key))
    section = errors.parse(f"{_CONFIG}, contrail", json_object, own.get("contrail", {})) or {}
    if section.get("nad", nad) != nad:
        errors.add(f"{_CONFIG}, contrail.nad", f"{quoted(section['nad'])} is not this one, which is {nad}")
    return NadSettings(
        dns=errors.parse(f"{_CONFIG}, dns", _read_dns, own.get("dns", {})) or (),
        mtu=_read_mtu(errors, own.get("mtu", section.get("mtu")), subnets, default_mtu),
        routes=_read_routes(errors, own.get("routes", []), subnets),
    )


def _read_dns(value: Any) -> tuple[str, ...]:
    """Name servers of CNI's `dns`; its other keys are the plugin's to pass on. Raises BadValueError."""
    servers = json_list(json_object(value).get("nameservers") or [])
    check_count(servers, "name servers")
    return tuple(str(parse_address(server)) for server in servers)


def _read_routes(errors: ValidationErrors, value: Any, subnets: Sequence[Subnet]) -> tuple[Route, ...]:
    place = f"{_CONFIG}, routes"
    entries = errors.parse(place, _route_list, value) or []
    return parse_routes(errors, place, entries, subnets=subnets)


def _route_list(value: Any) -> list[Any]:
    entries = json_list(value)
    check_count(entries, "routes")
    return entries


def _read_mtu(errors: ValidationErrors, value: Any, subnets: Sequence[Subnet], default_mtu: int) -> int | None:
    place = f"{_CONFIG}, mtu"
    mtu = None if value is None else errors.parse(place, parse_mtu, value)
    if any(":" in subnet.cidr for subnet in subnets):
        errors.parse(place, check_ipv6_mtu, default_mtu if mtu is None else mtu)
    return mtu


def _refuse_request(value: Any) -> None:
    if value:
        raise BadValueError(f"{quoted(value)} cannot be had: addresses come from the agent alone")
