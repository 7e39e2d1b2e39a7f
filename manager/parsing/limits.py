"""How much one object of a tenant may ask for.

All objects are read in one event loop, and a leader whose loop is held up for ten seconds loses its lease; a pod costs
what its networks list, once for each of its interfaces. So lists are bounded where nobody needs them longer, and those
that are longer are refused before anything in them is read.
"""

from collections.abc import Sized

from manager.parsing.errors import BadValueError

MAX_LIST_ITEMS = 1024
"""Subnets, gateways, exclusions, name servers and routes of one network attachment definition: so many of each."""

MAX_EXCLUDED_CIDRS = 8 * MAX_LIST_ITEMS
"""CIDRs that its exclusions become: a range of IPv4 addresses may be 62 of them, one of IPv6 addresses 254."""

MAX_NETWORKS = 256
"""Elements of a pod's `k8s.v1.cni.cncf.io/networks`."""


def check_count(listed: Sized, what: str, *, most: int = MAX_LIST_ITEMS) -> None:
    """Raises BadValueError, which names the bound, if more are listed; `what` is what they are, in the plural."""
    if len(listed) > most:
        raise BadValueError(f"{len(listed)} {what} are too many: at most {most} are served")
