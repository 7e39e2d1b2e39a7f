"""Subnets of one network, parsed from lists of CIDRs, gateways and exclusions; any value may be invalid.

A gateway or exclusion belongs to the subnet that contains it. A subnet without a gateway in the list has the default
gateway. Exclusions may be huge (half an IPv6 subnet), so they are kept as the smallest set of CIDRs that covers them.
"""

import itertools
from collections.abc import Iterable, Sequence
from ipaddress import collapse_addresses, summarize_address_range

from contrail_config.addressing.subnet import default_gateway, subnet_bounds
from contrail_config.objects import Subnet
from manager.parsing.addresses import Address, Network, parse_address, parse_cidr, parse_subnet, parse_unicast
from manager.parsing.cidr_table import CidrTable
from manager.parsing.errors import BadValueError
from manager.parsing.limits import MAX_EXCLUDED_CIDRS
from manager.parsing.quoting import quoted, summarized
from manager.parsing.validation import Setting, ValidationErrors


def parse_subnets(
    errors: ValidationErrors, *, cidrs: Setting, gateways: Setting, excluded: Setting
) -> tuple[Subnet, ...]:
    """Returns the subnets in the order of their CIDRs, and adds an error for each invalid value, which is left out."""
    networks = errors.parse_each(cidrs.location, parse_subnet, cidrs.values)
    _check_overlaps(errors, cidrs.location, networks)
    if len(networks) < len(cidrs.values):
        return ()  # without all subnets, gateways and exclusions cannot be assigned
    gateway_of = _parse_gateways(errors, gateways, networks)
    excluded_of = _parse_exclusions(errors, excluded, networks)
    return tuple(
        Subnet(
            cidr=str(network),
            gateway=gateway_of.get(network, default_gateway(str(network))),
            excluded=_collapsed(excluded_of[network]),
        )
        for network in networks
    )


def _check_overlaps(errors: ValidationErrors, location: str, networks: Sequence[Network]) -> None:
    """One pass over CIDRs sorted by start: a CIDR that overlaps any earlier one overlaps the one that ends last."""
    for version in (4, 6):
        last_ending: Network | None = None
        for network in sorted((n for n in networks if n.version == version), key=_start_then_prefix_length):
            if last_ending is not None and last_ending.overlaps(network):
                errors.add(location, f"{last_ending} and {network} overlap")
            else:
                last_ending = network


def _start_then_prefix_length(network: Network) -> tuple[int, int]:
    return int(network.network_address), network.prefixlen


def _parse_gateways(errors: ValidationErrors, gateways: Setting, networks: Sequence[Network]) -> dict[Network, str]:
    gateway_of: dict[Network, str] = {}
    lookup = _SubnetLookup(networks)

    def parse(text: str) -> None:
        address = parse_unicast(text)
        network = lookup.find(address, address, text)
        # The bounds exclude the default gateway, which the listed one replaces.
        if unusable := subnet_bounds(Subnet(cidr=str(network), gateway=None)).reserved.get(int(address)):
            raise BadValueError(f"{quoted(text)} cannot be the gateway of {network}: {unusable}")
        if network in gateway_of:
            raise BadValueError(f"{quoted(text)}: {network} already has gateway {gateway_of[network]}")
        gateway_of[network] = str(address)

    errors.parse_each(gateways.location, parse, gateways.values)
    return gateway_of


def _parse_exclusions(
    errors: ValidationErrors, excluded: Setting, networks: Sequence[Network]
) -> dict[Network, list[Network]]:
    excluded_of: dict[Network, list[Network]] = {network: [] for network in networks}
    lookup, remaining = _SubnetLookup(networks), MAX_EXCLUDED_CIDRS

    def parse(text: str) -> list[Network]:
        first, last = _bounds(text)
        of_subnet = excluded_of[lookup.find(first, last, text)]
        # One CIDR above the limit is enough: an IPv6 range could yield hundreds.
        covering: list[Network] = list(itertools.islice(summarize_address_range(first, last), remaining + 1))
        of_subnet += covering
        return covering

    for text in excluded.values:
        remaining -= len(errors.parse(excluded.location, parse, text) or ())
        if remaining < 0:
            problem = f"the ranges up to {quoted(text)} expand to more than {MAX_EXCLUDED_CIDRS} CIDRs"
            errors.add(excluded.location, problem)
            break
    return excluded_of


def _bounds(text: str) -> tuple[Address, Address]:
    """Returns first and last address of `a`, `a/length` or `a-b`."""
    if "/" in text:
        network = parse_cidr(text)
        return network[0], network[-1]
    first, dash, last = text.partition("-")
    low = parse_address(first.strip())
    high = parse_address(last.strip()) if dash else low
    if low.version != high.version or int(low) > int(high):
        raise BadValueError(f"{quoted(text)} is not a range from a lower to a higher address")
    return low, high


class _SubnetLookup:
    """Finds the subnet that contains an address range."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = networks
        self._table = CidrTable[Network]()
        for network in networks:
            self._table.add(network, network)

    def find(self, first: Address, last: Address, text: str) -> Network:
        """Returns the subnet that contains both addresses. Raises BadValueError, which quotes `text`, if none does."""
        # Subnets do not overlap, so the range is in this subnet or in none.
        network = self._table.find(first)
        if network is None or last not in network:
            raise BadValueError(f"{quoted(text)} is in none of the subnets {summarized(self._networks)}")
        return network


def _collapsed(networks: Iterable[Network]) -> tuple[str, ...]:
    collapsed = collapse_addresses(networks)  # type: ignore[type-var]  # all of one family, which the types cannot express
    return tuple(str(n.network_address) if n.num_addresses == 1 else str(n) for n in collapsed)
