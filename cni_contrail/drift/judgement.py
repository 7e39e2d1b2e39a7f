"""Which networks may have drifted after changes of the kernel."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from cni_contrail.datapath.desired import Network, Routed, Underlay
from cni_contrail.drift.drift_watch import NODE
from cni_contrail.drift.kernel_change import KernelChange
from cni_contrail.drift.network_drift import network_drift
from cni_contrail.drift.node_drift import drifted_uplinks, routed_drift
from cni_contrail.drift.possible_drift import NO_DRIFT, PossibleDrift, programs_of


def possible_drift(
    networks: Sequence[Network], routed: Routed, underlay: Underlay, changes: Mapping[int, Sequence[KernelChange]]
) -> dict[int, PossibleDrift]:
    """Returns what may differ, by number of the network; `NODE` is the number of index 0.

    The calling thread is in the node's network namespace.
    """
    if not changes:
        return {}
    found = {
        network.vni: network_drift(network, underlay, changes[network.vni])
        for network in networks
        if network.vni in changes
    }
    on_node = changes.get(NODE, ())
    found[NODE] = routed_drift(routed, underlay, on_node)
    for vni in drifted_uplinks(networks, on_node, _name_of):
        uplink = PossibleDrift(frozenset({"uplink"}), programs_of(on_node), frozenset())
        found[vni] = found.get(vni, NO_DRIFT).plus(uplink)
    return found


def _name_of(ifindex: int) -> str:
    try:
        return socket.if_indextoname(ifindex)
    except OSError:  # deleted
        return ""
