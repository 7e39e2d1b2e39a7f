"""The annotations of a NAD that say which network it is: one of its own, by its subnets, or one that exists already."""

from collections.abc import Mapping

from contrail_config.objects import FqName, Subnet
from manager.parsing.limits import check_count
from manager.parsing.list_text import parse_list
from manager.parsing.network_reference import NETWORK_KEY, parse_fq_name
from manager.parsing.quoting import quoted
from manager.parsing.subnets import parse_subnets
from manager.parsing.validation import Setting, ValidationErrors

CIDR_KEY = "opencontrail.org/cidr"
GATEWAY_KEY = "opencontrail.org/gateway"
EXCLUDE_KEY = "opencontrail.org/exclude"

_LISTED = {CIDR_KEY: "subnets", GATEWAY_KEY: "gateways", EXCLUDE_KEY: "exclusions"}


def parse_nad_network(
    errors: ValidationErrors, annotations: Mapping[str, str]
) -> tuple[tuple[Subnet, ...], FqName | None]:
    """Subnets of a network of its own, or a reference to another. What is wrong goes to `findings`."""
    _check_choice(errors, annotations)
    subnets = _read_own(errors, annotations)
    if NETWORK_KEY not in annotations:
        return subnets, None
    return subnets, errors.parse(NETWORK_KEY, parse_fq_name, annotations[NETWORK_KEY])


def _check_choice(errors: ValidationErrors, annotations: Mapping[str, str]) -> None:
    there = [f"{key} {quoted(annotations[key])}" for key in (CIDR_KEY, NETWORK_KEY) if key in annotations]
    if not there:
        errors.add(f"{CIDR_KEY}, {NETWORK_KEY}", "neither is there: one must say which network this is")
    elif len(there) > 1:
        errors.add(" and ".join(there), "only one can say which network this is")


def _read_own(errors: ValidationErrors, annotations: Mapping[str, str]) -> tuple[Subnet, ...]:
    if CIDR_KEY not in annotations:
        _refuse_without_subnets(errors, annotations)
        return ()
    cidrs = _read_stated(errors, annotations, CIDR_KEY)
    gateways = _read_stated(errors, annotations, GATEWAY_KEY)
    excluded = _read_stated(errors, annotations, EXCLUDE_KEY)
    if cidrs is None or gateways is None or excluded is None:
        return ()
    if not cidrs.values:
        errors.add(CIDR_KEY, f"{quoted(annotations[CIDR_KEY])} holds no CIDR")
    return parse_subnets(errors, cidrs=cidrs, gateways=gateways, excluded=excluded)


def _read_stated(errors: ValidationErrors, annotations: Mapping[str, str], key: str) -> Setting | None:
    def read(text: str) -> Setting:
        values = parse_list(text)
        check_count(values, _LISTED[key])
        return Setting(key, values)

    return errors.parse(key, read, annotations.get(key, ""))


def _refuse_without_subnets(errors: ValidationErrors, annotations: Mapping[str, str]) -> None:
    for key in (GATEWAY_KEY, EXCLUDE_KEY):
        if key in annotations:
            errors.add(key, f"{quoted(annotations[key])} has no subnet to belong to: it goes with {CIDR_KEY}")
