"""The annotations of a NAD that say which network it is: one of its own, by its subnets, or one that exists already."""

from collections.abc import Mapping

from contrail_config.objects import FqName, Subnet
from manager.parsing.bounds import check_number
from manager.parsing.findings import Findings, Stated
from manager.parsing.list_text import read_list
from manager.parsing.quoting import shown
from manager.parsing.reference import NETWORK_KEY, read_reference
from manager.parsing.subnets import read_subnets

CIDR_KEY = "opencontrail.org/cidr"
GATEWAY_KEY = "opencontrail.org/gateway"
EXCLUDE_KEY = "opencontrail.org/exclude"

_LISTED = {CIDR_KEY: "subnets", GATEWAY_KEY: "gateways", EXCLUDE_KEY: "exclusions"}


def read_network(findings: Findings, annotations: Mapping[str, str]) -> tuple[tuple[Subnet, ...], FqName | None]:
    """Subnets of a network of its own, or a reference to another. What is wrong goes to `findings`."""
    _check_choice(findings, annotations)
    subnets = _read_own(findings, annotations)
    if NETWORK_KEY not in annotations:
        return subnets, None
    return subnets, findings.read(NETWORK_KEY, read_reference, annotations[NETWORK_KEY])


def _check_choice(findings: Findings, annotations: Mapping[str, str]) -> None:
    there = [f"{key} {shown(annotations[key])}" for key in (CIDR_KEY, NETWORK_KEY) if key in annotations]
    if not there:
        findings.add(f"{CIDR_KEY}, {NETWORK_KEY}", "neither is there: one must say which network this is")
    elif len(there) > 1:
        findings.add(" and ".join(there), "only one can say which network this is")


def _read_own(findings: Findings, annotations: Mapping[str, str]) -> tuple[Subnet, ...]:
    if CIDR_KEY not in annotations:
        _refuse_without_subnets(findings, annotations)
        return ()
    cidrs = _read_stated(findings, annotations, CIDR_KEY)
    gateways = _read_stated(findings, annotations, GATEWAY_KEY)
    excluded = _read_stated(findings, annotations, EXCLUDE_KEY)
    if cidrs is None or gateways is None or excluded is None:
        return ()
    if not cidrs.values:
        findings.add(CIDR_KEY, f"{shown(annotations[CIDR_KEY])} holds no CIDR")
    return read_subnets(findings, cidrs=cidrs, gateways=gateways, excluded=excluded)


def _read_stated(findings: Findings, annotations: Mapping[str, str], key: str) -> Stated | None:
    def read(text: str) -> Stated:
        values = read_list(text)
        check_number(values, _LISTED[key])
        return Stated(key, values)

    return findings.read(key, read, annotations.get(key, ""))


def _refuse_without_subnets(findings: Findings, annotations: Mapping[str, str]) -> None:
    for key in (GATEWAY_KEY, EXCLUDE_KEY):
        if key in annotations:
            findings.add(key, f"{shown(annotations[key])} has no subnet to belong to: it goes with {CIDR_KEY}")
