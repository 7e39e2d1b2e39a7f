"""Compares macvlans of nested mode, and the VLAN links that carry them, with their plans."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence

from cni_contrail.link import links, vlan_messages
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.links import LinkInfo
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import open_own_netns
from cni_contrail.link.netns_ids import get_netns_id, parse_netns_id
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.vlan_links import find_vlan_link
from cni_contrail.link.vlan_messages import VlanLink


class ObservedMacvlans(NamedTuple):
    """VLAN links and whether their parents are up, by `host_name`, those that exist; modes of macvlans by name.

    `host_id` is the namespace ID of the host in the sandbox, negative if it has none.
    """

    vlans: Mapping[str, VlanLink]
    parents: Mapping[str, bool]
    modes: Mapping[str, int]
    host_id: int


def observe_macvlans(netns_fd: int, plans: Sequence[InterfacePlan]) -> ObservedMacvlans:
    """Reads what exists of the plans; the calling thread is in the host's network namespace.

    Raises NetnsError or KernelError.
    """
    with RouteSocket() as host:
        shared = {plan.host_name: plan for plan in plans}
        vlans = {name: vlan for name, plan in shared.items() if (vlan := find_vlan_link(host, plan)) is not None}
        parents = _answers(host, [plan.parent for plan in shared.values()])
    with open_route_socket(netns_fd) as sandbox:
        ends = _answers(sandbox, [plan.name for plan in plans])
        host_id = _own_netns_id(sandbox)
    return ObservedMacvlans(
        vlans,
        {name: links.parse_link(parents[plan.parent]).is_up for name, plan in shared.items() if plan.parent in parents},
        {name: vlan_messages.parse_macvlan_mode(body) for name, body in ends.items()},
        host_id,
    )


def macvlan_differences(plan: InterfacePlan, end: LinkInfo | None, observed: ObservedMacvlans | None) -> Iterator[str]:
    """Yields one sentence for each difference of VLAN link and mode; `end` is the sandbox end, None if missing."""
    if observed is None or plan.host_name not in observed.vlans:
        yield f"{plan.parent} has no link for VLAN {plan.vlan_id}, over which {plan.name} was created."
        return
    vlan = observed.vlans[plan.host_name]
    if not observed.parents.get(plan.host_name):
        yield f"{plan.parent}, the parent of {plan.name}, is down or does not exist."
    if not vlan.info.is_up:
        yield f"{vlan.info.name} is down."
    if end is None or end.kind != "macvlan":
        return
    if (end.peer_index, end.peer_netns_id) != (vlan.info.ifindex, observed.host_id):
        yield f"{plan.name} is not over {vlan.info.name}, the link for VLAN {plan.vlan_id} of {plan.parent}."
    if observed.modes.get(plan.name) != vlan_messages.VEPA:
        yield f"{plan.name} is not in mode vepa."


def _answers(kernel: RouteSocket, names: Sequence[str]) -> dict[str, bytes]:
    """Returns the answers about those links that exist, by name."""
    found = {}
    for name, answer in zip(names, kernel.get([links.get(name) for name in names]), strict=True):
        if not isinstance(answer, KernelError):
            found[name] = answer
        elif answer.errno != errno.ENODEV:
            raise answer
    return found


def _own_netns_id(sandbox: RouteSocket) -> int:
    """Returns the ID by which the sandbox knows the calling thread's namespace, negative if it has none."""
    own = open_own_netns()
    try:
        return parse_netns_id(sandbox.execute_all_and_get([], get_netns_id(own)))
    finally:
        os.close(own)
