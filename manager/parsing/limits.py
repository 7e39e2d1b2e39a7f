"""Limits on how much one tenant object may request.

All objects are parsed in one event loop, and a leader whose loop is blocked for ten seconds loses its lease. A pod also
costs what its networks list, once per interface. So lists that nobody needs longer are limited, and a list above the
limit is rejected before its items are parsed.
"""

from collections.abc import Sized

from manager.parsing.errors import BadValueError

MAX_LIST_ITEMS = 1024
"""Limit for each of the subnets, gateways, exclusions, name servers and routes of a network attachment definition."""

MAX_EXCLUDED_CIDRS = 8 * MAX_LIST_ITEMS
"""Limit for the CIDRs that the exclusions expand to: an IPv4 range may expand to 62 CIDRs, an IPv6 range to 254."""

MAX_NETWORKS = 256
"""Limit for the elements of a pod's `k8s.v1.cni.cncf.io/networks`."""


def check_count(items: Sized, plural: str, *, limit: int = MAX_LIST_ITEMS) -> None:
    """Raises BadValueError if there are more items than the limit; `plural` is what the message calls them."""
    if len(items) > limit:
        # The items are not quoted: any of them may be huge.
        raise BadValueError(f"{len(items)} {plural} are too many: at most {limit} are supported")
