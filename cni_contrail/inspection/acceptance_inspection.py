"""Inspects the filter of tunnel packets in the node's namespace: whose packets are accepted."""

from __future__ import annotations

from collections.abc import Sequence

from cni_contrail.datapath import tunnel_rules
from cni_contrail.datapath.desired import Network, Underlay
from cni_contrail.datapath.missing_modules import open_filters
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.node_tunnels import known_nodes
from cni_contrail.datapath.tunnel_filter import read_filter
from cni_contrail.inspection.difference import WRONG, Difference, missing, stale

FILTER = "filter of tunnel packets"


def inspect_acceptance(underlay: Underlay, networks: Sequence[Network]) -> list[Difference]:
    """Returns what is wrong with the filter; the calling thread is in the node's namespace. Raises LinkError."""
    if not underlay.addresses:
        return []
    with open_filters() as filters:
        state = read_filter(filters)
    if state.table is None or not state.table.is_whole(tunnel_rules.CHAINS, tunnel_rules.rules(underlay.port)):
        return [Difference(INDEX_0, WRONG, FILTER, "missing, or its rules were changed")]
    accepted = known_nodes(underlay, networks)
    routed = underlay.routed
    is_complete = all(each.is_complete for each in networks) and (routed is None or routed.is_complete)
    differences = list(missing(INDEX_0, (f"{FILTER}: node {each}" for each in accepted - state.nodes)))
    if is_complete:
        differences += stale(INDEX_0, (f"{FILTER}: node {each}" for each in state.nodes - accepted))
    return differences
