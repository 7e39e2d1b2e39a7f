"""Inspects the whole node: each network, index 0, and what all networks share. Changes nothing.

A network without a plugged port need not have a namespace yet: the daemon may hold it by a descriptor until the first
ADD.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterator, Sequence

from cni_contrail.datapath.desired import Network, Routed, Underlay
from cni_contrail.datapath.namespaces import Namespaces, name_of
from cni_contrail.datapath.network_ports import ports_in
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.inspection.acceptance_inspection import inspect_acceptance
from cni_contrail.inspection.difference import MISSING, STALE, WRONG, Difference
from cni_contrail.inspection.index_0_inspection import inspect_blocks, inspect_ports
from cni_contrail.inspection.network_inspection import inspect_network
from cni_contrail.inspection.uplink_inspection import NodeUplinks, inspect_uplink, read_uplinks
from cni_contrail.link.errors import LinkError, NetnsError
from cni_contrail.link.netns import open_netns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def inspect_node(
    networks: Sequence[Network],
    routed: Routed,
    underlay: Underlay,
    fabric_subnets: Sequence[str],
    *,
    namespaces: Namespaces,
    sysctl_dir: str = "/proc/sys",
) -> list[Difference]:
    """Returns what is wrong in the kernel of the calling thread's node; what cannot be read is a difference, too."""
    counts = Counter(network.vni for network in networks)
    unique = [network for network in networks if counts[network.vni] == 1]
    found = _tried("index 0", lambda: inspect_ports(routed, sysctl_dir=sysctl_dir))
    found += _tried("index 0 on other nodes", lambda: inspect_blocks(underlay.routed, underlay))
    found += _tried("filter of tunnel packets", lambda: inspect_acceptance(underlay, unique))
    found += _inspect_networks(unique, underlay, fabric_subnets, namespaces, sysctl_dir)
    return found + list(_stale_namespaces(namespaces, counts))


def _inspect_networks(
    networks: Sequence[Network],
    underlay: Underlay,
    fabric_subnets: Sequence[str],
    namespaces: Namespaces,
    sysctl_dir: str,
) -> list[Difference]:
    try:
        uplinks = read_uplinks(networks, fabric_subnets)
    except LinkError as error:
        return [_unreadable(INDEX_0, "uplinks", error)]
    found = list(uplinks.differences)
    for network in networks:
        found += _tried(
            f"network {network.vni}",
            functools.partial(_inspect_network, network, underlay, uplinks, namespaces, sysctl_dir),
            vni=network.vni,
        )
    return found


def _inspect_network(
    network: Network, underlay: Underlay, uplinks: NodeUplinks, namespaces: Namespaces, sysctl_dir: str
) -> list[Difference]:
    try:
        netns = open_netns(namespaces.path(network.vni))
    except NetnsError:
        is_lost = bool(network.ports)
        return [Difference(network.vni, MISSING, f"network namespace {name_of(network.vni)}")] if is_lost else []
    try:
        found = inspect_network(netns, network, underlay, sysctl_dir=sysctl_dir)
        return found + inspect_uplink(netns, network, uplinks)
    finally:
        os.close(netns)


def _stale_namespaces(namespaces: Namespaces, desired: Counter[int]) -> Iterator[Difference]:
    """Yields namespaces without ports; one with ports stays until the last pod is gone."""
    for vni in sorted(namespaces.existing() - desired.keys()):
        try:
            netns = open_netns(namespaces.path(vni))
        except NetnsError:
            yield Difference(vni, STALE, f"network namespace {name_of(vni)}")
            continue
        try:
            if not ports_in(netns):
                yield Difference(vni, STALE, f"network namespace {name_of(vni)}")
        except LinkError as error:
            yield _unreadable(vni, f"network namespace {name_of(vni)}", error)
        finally:
            os.close(netns)


def _tried(what: str, inspect: Callable[[], list[Difference]], *, vni: int = INDEX_0) -> list[Difference]:
    try:
        return inspect()
    except LinkError as error:
        return [_unreadable(vni, what, error)]


def _unreadable(vni: int, what: str, error: LinkError) -> Difference:
    return Difference(vni, WRONG, what, f"cannot be read: {error}")
