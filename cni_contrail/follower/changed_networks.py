"""Changed networks: finds which networks two desired states of a node differ in. Pure.

Pods come and go all the time, on this node and on others, and each changes ports or remote endpoints of a few networks.
Only these are then read from the kernel. Any other change may concern networks that did not change themselves: their
subnets overlap, or they are gone. Then all are read.
"""

from __future__ import annotations

from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.follower.desired_state import DesiredState


def changed_networks(before: DesiredState, after: DesiredState) -> frozenset[int] | None:
    """Returns the VNIs of the networks that differ, with INDEX_0 if index 0 does; None if all are concerned."""
    old, new = _by_vni(before), _by_vni(after)
    if old is None or new is None or old.keys() != new.keys():
        return None
    if before.routed.masquerade != after.routed.masquerade or _way_out(before) != _way_out(after):
        return None
    changed = [vni for vni, network in new.items() if network != old[vni]]
    if any(_fixed(new[vni]) != _fixed(old[vni]) for vni in changed):
        return None
    has_index_0 = (before.routed, before.underlay) != (after.routed, after.underlay)
    return frozenset(changed + ([INDEX_0] if has_index_0 else []))


def _by_vni(state: DesiredState) -> dict[int, Network] | None:
    """Returns the networks by VNI, None if two have the same one."""
    found = {network.vni: network for network in state.networks}
    return found if len(found) == len(state.networks) else None


def _way_out(state: DesiredState) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
    return state.underlay.addresses, state.underlay.port, state.fabric_subnets


def _fixed(network: Network) -> Network:
    """Returns the network without what changes with its pods."""
    return network._replace(ports=(), remotes=(), is_complete=True)
