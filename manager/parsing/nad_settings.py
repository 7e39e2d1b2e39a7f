"""What the configuration of a NAD says to our plugin about its network: CNI's own keys, and the section `contrail`.

A plugin that serves networks from a controller must not take `spec.config` for its own data (multi-network standard
v1.3, 4.4), so subnets stand in annotations, and addresses asked of `ipam` here are refused rather than overlooked.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from contrail_config.objects import Route, Subnet
from manager.parsing.addresses import parse_address
from manager.parsing.errors import BadValueError
from manager.parsing.findings import Findings
from manager.parsing.json_text import json_list, json_object
from manager.parsing.quoting import shown
from manager.parsing.routes import read_routes

_CONFIG = "spec.config"
_LEAST_MTU = 68  # RFC 791
_LEAST_IPV6_MTU = 1280  # RFC 8200, section 5
_LARGEST_MTU = 65535


class NadSettings(NamedTuple):
    """Name servers, MTU in bytes (None: the default) and routes."""

    dns: tuple[str, ...]
    mtu: int | None
    routes: tuple[Route, ...]


def read_settings(
    findings: Findings, own: Mapping[str, Any], *, nad: str, subnets: Sequence[Subnet], default_mtu: int
) -> NadSettings:
    """The settings; `own` is what the configuration says to our plugin. What is wrong goes to `findings`."""
    for key in ("ipam", "ipMasq"):
        findings.read(f"{_CONFIG}, {key}", _refuse_request, own.get(key))
    section = findings.read(f"{_CONFIG}, contrail", json_object, own.get("contrail", {})) or {}
    if section.get("nad", nad) != nad:
        findings.add(f"{_CONFIG}, contrail.nad", f"{shown(section['nad'])} is not this one, which is {nad}")
    return NadSettings(
        dns=findings.read(f"{_CONFIG}, dns", read_dns, own.get("dns", {})) or (),
        mtu=_read_mtu(findings, own.get("mtu", section.get("mtu")), subnets, default_mtu),
        routes=read_routes(findings, f"{_CONFIG}, routes", own.get("routes", []), subnets=subnets),
    )


def read_dns(value: Any) -> tuple[str, ...]:
    """Name servers of CNI's `dns`; its other keys are the plugin's to pass on. Raises BadValueError."""
    servers = json_object(value).get("nameservers") or []
    return tuple(str(parse_address(server)) for server in json_list(servers))


def read_mtu(value: Any) -> int:
    """An MTU in bytes. Raises BadValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not _LEAST_MTU <= value <= _LARGEST_MTU:
        raise BadValueError(f"{shown(value)} is no MTU: a number from {_LEAST_MTU} to {_LARGEST_MTU}")
    return value


def _read_mtu(findings: Findings, value: Any, subnets: Sequence[Subnet], default_mtu: int) -> int | None:
    mtu = None if value is None else findings.read(f"{_CONFIG}, mtu", read_mtu, value)
    effective = default_mtu if mtu is None else mtu
    if effective < _LEAST_IPV6_MTU and any(":" in subnet.cidr for subnet in subnets):
        findings.add(f"{_CONFIG}, mtu", f"{effective} is below {_LEAST_IPV6_MTU}, the least that IPv6 needs")
    return mtu


def _refuse_request(value: Any) -> None:
    if value:
        raise BadValueError(f"{shown(value)} cannot be had: addresses come from the agent alone")
