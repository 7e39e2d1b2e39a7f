"""Network settings in a NAD's `spec.config`: CNI's own keys, and the section `contrail`.

A plugin whose networks come from a controller must not use `spec.config` for its own data (multi-network standard
v1.3, 4.4), so subnets are in annotations. A request for addresses through `ipam` is rejected rather than ignored.
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
    errors: ValidationErrors, own: Mapping[str, Any], *, nad: str, subnets: Sequence[Subnet], default_mtu: int | None
) -> NadSettings:
    """Returns the settings in `own`, the Contrail plugin's part of the configuration; adds an error per bad value."""
    for key in ("ipam", "ipMasq"):
        errors.parse(f"{_CONFIG}, {key}", _reject_request, own.get(key))
    # The section is the plugin's own, so its keys yield to CNI's keys of the same meaning.
    section = errors.parse(f"{_CONFIG}, contrail", json_object, own.get("contrail", {})) or {}
    if section.get("nad", nad) != nad:
        errors.add(f"{_CONFIG}, contrail.nad", f"{quoted(section['nad'])} does not match this NAD, {nad}")
    return NadSettings(
        dns=errors.parse(f"{_CONFIG}, dns", _parse_dns, own.get("dns", {})) or (),
        mtu=_parse_mtu(errors, own.get("mtu", section.get("mtu")), subnets, default_mtu),
        routes=_parse_routes(errors, own.get("routes", []), subnets),
    )


def _parse_dns(value: Any) -> tuple[str, ...]:
    """Returns the name servers; the plugin passes on the other keys of CNI's `dns`. Raises BadValueError."""
    servers = json_list(json_object(value).get("nameservers") or [])
    check_count(servers, "name servers")
    return tuple(str(parse_address(server)) for server in servers)


def _parse_routes(errors: ValidationErrors, value: Any, subnets: Sequence[Subnet]) -> tuple[Route, ...]:
    location = f"{_CONFIG}, routes"
    entries = errors.parse(location, _route_list, value) or []
    return parse_routes(errors, location, entries, subnets=subnets)


def _route_list(value: Any) -> list[Any]:
    entries = json_list(value)
    check_count(entries, "routes")
    return entries


def _parse_mtu(errors: ValidationErrors, value: Any, subnets: Sequence[Subnet], default_mtu: int | None) -> int | None:
    location = f"{_CONFIG}, mtu"
    mtu = None if value is None else errors.parse(location, parse_mtu, value)
    # A configured default is checked too: it may be sufficient for IPv4 only.
    used = default_mtu if mtu is None else mtu
    if used is not None and any(":" in subnet.cidr for subnet in subnets):
        errors.parse(location, check_ipv6_mtu, used)
    return mtu


def _reject_request(value: Any) -> None:
    if value:
        raise BadValueError(f"{quoted(value)} is not supported: addresses come only from the agent")
