"""Packets and bytes of pods' interfaces, counted at their host ends.

Reading them costs one socket for each network with a port. So it is no part of reconciling, and is done rarely.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from cni_contrail.datapath.desired import Network, Routed
from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.link.counters import Counters, dump_counters, parse_counters
from cni_contrail.link.errors import LinkError
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.netns import open_netns

MAX_COUNTED = 4096
"""Ports that are counted: of more, the first ones by network, index 0 first."""


def port_counters(
    namespaces: Namespaces, networks: Sequence[Network], routed: Routed
) -> dict[int, dict[str, Counters]]:
    """Returns the counters of the ports that exist, by number of the network and link.

    The calling thread is in the node's network namespace. A network that cannot be read is left out.
    """
    remaining = MAX_COUNTED
    found: dict[int, dict[str, Counters]] = {}
    wanted = {INDEX_0: [port.link for port in routed.ports]}
    wanted.update((each.vni, [port.link for port in each.ports]) for each in networks)
    for vni, links in sorted(wanted.items()):
        chosen = frozenset(sorted(links)[:remaining])
        remaining -= len(chosen)
        try:
            counted = _counters(namespaces, vni, chosen) if chosen else {}
        except LinkError:  # it is gone, or a problem that reconciling reports
            continue
        if counted:
            found[vni] = counted
    return found


def _counters(namespaces: Namespaces, vni: int, links: Collection[str]) -> dict[str, Counters]:
    if vni == INDEX_0:
        kernel = RouteSocket()
    else:
        netns = open_netns(namespaces.path(vni))  # one without a name has no ports yet
        try:
            kernel = open_route_socket(netns)
        finally:
            os.close(netns)
    with kernel:
        counted = map(parse_counters, kernel.dump(dump_counters()))
        return {name: counters for name, counters in counted if name in links}
