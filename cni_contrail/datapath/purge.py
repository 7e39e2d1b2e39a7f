"""Removes the datapath from a node: networks with uplinks and tunnels, and what index 0 has in the node's namespace.

Ports that exist are pods with traffic, so a network with ports, and the routed ports, stay unless the caller says
otherwise. A process that programs the kernel at the same time makes everything again.

Not removed: forwarding, which other programs may rely on, and links of pods, which go with their pods.
"""

from __future__ import annotations

from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.datapath.network_lock import locked_network
from cni_contrail.datapath.network_ports import ports_in
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.routed_blocks import purge_blocks
from cni_contrail.datapath.routed_reconciler import purge_routed
from cni_contrail.datapath.tunnel_filter import remove_filter
from cni_contrail.datapath.tunnels import remove_all_tunnels
from cni_contrail.datapath.uplinks import remove_unused_table, remove_uplink
from cni_contrail.link.errors import LinkError
from cni_contrail.link.named_tuple import NamedTuple


class PurgeOutcome(NamedTuple):
    """Ports of what was `removed`, and of what was `kept` because of them; `problems` prevented the rest.

    By VNI, with INDEX_0 for the routed ports.
    """

    removed: dict[int, tuple[str, ...]]
    kept: dict[int, tuple[str, ...]]
    problems: dict[int, str]


def purge(namespaces: Namespaces, *, with_ports: bool, sysctl_dir: str = "/proc/sys") -> PurgeOutcome:
    """Removes everything; with `with_ports` also what has ports, whose pods are then without traffic.

    The calling thread is in the node's network namespace. What fails does not stop the rest.
    """
    outcome = PurgeOutcome({}, {}, {})
    try:
        _purge_routed(outcome, with_ports=with_ports, sysctl_dir=sysctl_dir)
    except LinkError as error:
        outcome.problems[INDEX_0] = str(error)
    for vni in sorted(namespaces.existing()):
        try:
            _purge_network(namespaces, vni, outcome, with_ports=with_ports)
        except LinkError as error:
            outcome.problems[vni] = str(error)
    try:
        _purge_shared(outcome)
    except LinkError as error:
        outcome.problems[INDEX_0] = str(error)
    return outcome


def _purge_routed(outcome: PurgeOutcome, *, with_ports: bool, sysctl_dir: str) -> None:
    purged = purge_routed(with_ports=with_ports, sysctl_dir=sysctl_dir)
    if purged.is_kept:
        outcome.kept[INDEX_0] = purged.ports
    elif purged.ports or purged.had_table:
        outcome.removed[INDEX_0] = purged.ports


def _purge_shared(outcome: PurgeOutcome) -> None:
    """Removes what networks share, unless what is left needs it: index 0 on other nodes, filters of tunnels."""
    left = outcome.kept.keys() | outcome.problems.keys()
    had_blocks = INDEX_0 not in left and purge_blocks()
    had_filter = not left and remove_filter()
    had_uplinks = remove_unused_table()
    if INDEX_0 not in left and (had_blocks or had_filter or had_uplinks):
        outcome.removed.setdefault(INDEX_0, ())


def _purge_network(namespaces: Namespaces, vni: int, outcome: PurgeOutcome, *, with_ports: bool) -> None:
    with locked_network(namespaces, vni) as netns:
        ports = tuple(sorted(ports_in(netns)))
        if ports and not with_ports:
            outcome.kept[vni] = ports
            return
        remove_uplink(vni)
        remove_all_tunnels(netns)
        namespaces.delete(vni)
    outcome.removed[vni] = ports
