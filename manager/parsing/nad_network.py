"""The annotations of a NAD that define its network: subnets of its own, or a reference to an existing network."""

from collections.abc import Mapping

from contrail_config.objects import FqName, Subnet
from manager.parsing.errors import BadValueError
from manager.parsing.json_text import parse_literal
from manager.parsing.limits import check_count
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
    """Returns the subnets of the NAD's own network or the reference to another, and adds an error per invalid value."""
    _check_choice(errors, annotations)
    subnets = _parse_own(errors, annotations)
    if NETWORK_KEY not in annotations:
        return subnets, None
    return subnets, errors.parse(NETWORK_KEY, parse_fq_name, annotations[NETWORK_KEY])


def _check_choice(errors: ValidationErrors, annotations: Mapping[str, str]) -> None:
    present = [f"{key} {quoted(annotations[key])}" for key in (CIDR_KEY, NETWORK_KEY) if key in annotations]
    if not present:
        errors.add(f"{CIDR_KEY}, {NETWORK_KEY}", "missing: one of them must define the network")
    elif len(present) > 1:
        errors.add(" and ".join(present), "only one of them may define the network")


def _parse_own(errors: ValidationErrors, annotations: Mapping[str, str]) -> tuple[Subnet, ...]:
    if CIDR_KEY not in annotations:
        _reject_without_subnets(errors, annotations)
        return ()
    cidrs = _parse_setting(errors, annotations, CIDR_KEY)
    gateways = _parse_setting(errors, annotations, GATEWAY_KEY)
    excluded = _parse_setting(errors, annotations, EXCLUDE_KEY)
    # The lists have been reported already; their values are unknown.
    if cidrs is None or gateways is None or excluded is None:
        return ()
    if not cidrs.values:
        errors.add(CIDR_KEY, f"{quoted(annotations[CIDR_KEY])} contains no CIDR")
    return parse_subnets(errors, cidrs=cidrs, gateways=gateways, excluded=excluded)


def _parse_setting(errors: ValidationErrors, annotations: Mapping[str, str], key: str) -> Setting | None:
    def parse(text: str) -> Setting:
        values = _parse_list(text)
        check_count(values, _LISTED[key])
        return Setting(key, values)

    return errors.parse(key, parse, annotations.get(key, ""))


def _reject_without_subnets(errors: ValidationErrors, annotations: Mapping[str, str]) -> None:
    for key in (GATEWAY_KEY, EXCLUDE_KEY):
        if key in annotations:
            errors.add(key, f"{quoted(annotations[key])} has no effect without {CIDR_KEY}")


def _parse_list(text: str) -> list[str]:
    """Returns the trimmed values of `a`, `a, b` or `["a", "b"]`; none if the text is blank. Raises BadValueError."""
    stripped = text.strip()
    if not stripped:
        return []
    # A literal rather than JSON, for compatibility: upstream accepts single quotes.
    values = parse_literal(stripped) if stripped.startswith("[") else stripped.split(",")
    if not all(isinstance(value, str) and value.strip() for value in values):
        raise BadValueError(f"{quoted(text)} is not a list of non-empty strings")
    return [value.strip() for value in values]
