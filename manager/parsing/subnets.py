"""Subnets of one network, from lists of CIDRs, gateways and exclusions, in which any value may be wrong.

A gateway and an exclusion belong to the subnet in which they lie. A subnet without a stated gateway has the one that
addressing gives it by default. Exclusions may be huge (half an IPv6 subnet), so they stay CIDRs, as few as cover them.
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
    """The subnets in the order of their CIDRs. What is wrong goes to `findings`, and is left out."""
    networks = errors.parse_each(cidrs.place, parse_subnet, cidrs.values)
    _note_overlaps(errors, cidrs.place, networks)
    if len(networks) < len(cidrs.values):
        return ()  # where gateways and exclusions belong is not known
    gateway_of = _read_gateways(errors, gateways, networks)
    excluded_of = _read_exclusions(errors, excluded, networks)
    return tuple(
        Subnet(
            cidr=str(network),
            gateway=gateway_of.get(network, default_gateway(str(network))),
            excluded=_fewest_texts(excluded_of[network]),
        )
        for network in networks
    )


def _note_overlaps(errors: ValidationErrors, place: str, networks: Sequence[Network]) -> None:
    """Among CIDRs in order of their start one that overlaps an earlier one overlaps the one that reaches furthest."""
    for version in (4, 6):
        furthest: Network | None = None
        for network in sorted((n for n in networks if n.version == version), key=_start_then_longest):
            if furthest is not None and furthest.overlaps(network):
                errors.add(place, f"{furthest} and {network} overlap")
            else:
                furthest = network


def _start_then_longest(network: Network) -> tuple[int, int]:
    return int(network.network_address), network.prefixlen


def _read_gateways(errors: ValidationErrors, gateways: Setting, networks: Sequence[Network]) -> dict[Network, str]:
    gateway_of: dict[Network, str] = {}
    homes = _Homes(networks)

    def read(text: str) -> None:
        address = parse_unicast(text)
        network = homes.of(address, address, text)
        if unusable := subnet_bounds(Subnet(cidr=str(network), gateway=None)).reserved.get(int(address)):
            raise BadValueError(f"{quoted(text)} cannot be the gateway of {network}: {unusable}")
        if network in gateway_of:
            raise BadValueError(f"{quoted(text)} is one too many: {network} has gateway {gateway_of[network]}")
        gateway_of[network] = str(address)

    errors.parse_each(gateways.place, read, gateways.values)
    return gateway_of


def _read_exclusions(
    errors: ValidationErrors, excluded: Setting, networks: Sequence[Network]
) -> dict[Network, list[Network]]:
    excluded_of: dict[Network, list[Network]] = {network: [] for network in networks}
    homes, left = _Homes(networks), MAX_EXCLUDED_CIDRS

    def read(text: str) -> list[Network]:
        first, last = _bounds(text)
        home = excluded_of[homes.of(first, last, text)]
        covering: list[Network] = list(itertools.islice(summarize_address_range(first, last), left + 1))
        home += covering
        return covering

    for text in excluded.values:
        left -= len(errors.parse(excluded.place, read, text) or ())
        if left < 0:
            problem = f"the ranges up to {quoted(text)} are more than {MAX_EXCLUDED_CIDRS} CIDRs"
            errors.add(excluded.place, problem)
            break
    return excluded_of


def _bounds(text: str) -> tuple[Address, Address]:
    """First and last address of `a`, `a/length` or `a-b`."""
    if "/" in text:
        network = parse_cidr(text)
        return network[0], network[-1]
    first, dash, last = text.partition("-")
    low = parse_address(first.strip())
    high = parse_address(last.strip()) if dash else low
    if low.version != high.version or int(low) > int(high):
        raise BadValueError(f"{quoted(text)} is no range from a lower to a higher address")
    return low, high


class _Homes:
    """The subnets of a network, by the addresses in them."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = networks
        self._table = CidrTable[Network]()
        for network in networks:
            self._table.add(network, network)

    def of(self, first: Address, last: Address, text: str) -> Network:
        """The subnet in which both lie; `text` is how they are written. Raises BadValueError if there is none."""
        network = self._table.find(first)
        if network is None or last not in network:
            raise BadValueError(f"{quoted(text)} lies in none of the subnets {summarized(self._networks)}")
        return network


def _fewest_texts(networks: Iterable[Network]) -> tuple[str, ...]:
    fewest = collapse_addresses(networks)  # type: ignore[type-var]  # they are of one family, which no type says
    return tuple(str(n.network_address) if n.num_addresses == 1 else str(n) for n in fewest)
