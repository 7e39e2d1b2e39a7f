"""Damage of index 0 in a kernel that can stop packets through its tunnels, told from damage of pods alone. Pure.

A tunnel that answers nothing is a consequence of such damage at either end. Beside any other damage it is a finding of
its own.
"""

import re
from collections.abc import Collection

from cni_contrail.inspection.difference import MISSING, STALE, WRONG

_LINK = r"contrail\.\S+"
_CAUSES = {
    MISSING: (
        rf"tunnel {_LINK}",
        rf"address \S+ of {_LINK}",
        r"filter of tunnel packets: node (?P<node>\S+)",
        rf"route to \S+ by (?P<node>\S+) on {_LINK}.*",
        rf"neighbour (?P<node>\S+) by {_LINK}.*",
        rf"entry of {_LINK} for \S+: to node (?P<node>\S+)",
    ),
    WRONG: (
        rf"tunnel {_LINK}",
        r"filter of tunnel packets",
        r"index 0 on other nodes",
        r"route to \S+: unreachable",
        rf"route to \S+ by (?P<node>\S+) on {_LINK}.*",
        rf"neighbour (?P<node>\S+) by {_LINK}.*",
        rf"entry of {_LINK} for \S+: to node (?P<node>\S+)",
    ),
    # These take packets from the right way; entries and neighbours that nothing uses take none.
    STALE: (
        rf"tunnel {_LINK}",
        rf"address \S+ of {_LINK}",
        rf"route to \S+ by \S+ on {_LINK}.*",
        r"route to \S+: unreachable",
    ),
}


def stops_packets(fault: str, what: str, addresses: Collection[str]) -> bool:
    """Returns whether a difference of index 0 can stop packets between its node and the one with these addresses."""
    for pattern in _CAUSES.get(fault, ()):
        found = re.fullmatch(pattern, what)
        if found is not None:
            node = found.groupdict().get("node")
            return node is None or node in addresses
    return False
