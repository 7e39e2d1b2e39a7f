"""Addresses of pods at index 0 that policy rules of the node keep from their ports.

Our routes are in the table `main`. The node's policy rules are those of other programs, such as of a VPN, and stay; a
rule before that table may send packets for a pod elsewhere, or drop them, whatever `main` says. The kernel is asked
only where somebody has changed the rules.

Not found: rules that only concern packets from certain links or addresses, or with a mark.
"""

from __future__ import annotations

from collections.abc import Mapping

from cni_contrail.datapath.policy_rules import dump_rules, rule_requests
from cni_contrail.datapath.route_lookup import find_route, parse_found_route
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket


def diverted_addresses(kernel: RouteSocket, links: Mapping[str, int]) -> list[str]:
    """Returns the addresses whose packets do not leave by their link; `links` are indexes by address.

    In the socket's namespace. Raises KernelError.
    """
    if not links or not any(rule_requests(kernel.dump(dump_rules()))):
        return []
    addresses = sorted(links)
    answers = zip(addresses, kernel.get([find_route(each) for each in addresses]), strict=True)
    return [
        address
        for address, answer in answers
        if isinstance(answer, KernelError) or parse_found_route(answer).ifindex != links[address]
    ]
