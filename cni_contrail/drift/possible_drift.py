"""What may differ from the desired state after changes of the kernel, and what all judgements of changes share."""

from __future__ import annotations

from collections.abc import Sequence

from cni_contrail.drift.kernel_change import FilterChanged, KernelChange, LinkGone, LinkSet
from cni_contrail.link.named_tuple import NamedTuple


class PossibleDrift(NamedTuple):
    """Kinds of objects that may have to be repaired, and the programs that changed rules.

    `lost_ports` are deleted links, which nobody can make again: usually their pod is being deleted.
    """

    objects: frozenset[str]
    programs: frozenset[str]
    lost_ports: frozenset[str]

    def without(self, objects: frozenset[str]) -> PossibleDrift:
        """Returns the rest, of which nothing tells who has changed it."""
        return PossibleDrift(self.objects - objects, frozenset(), frozenset())

    def plus(self, other: PossibleDrift) -> PossibleDrift:
        """Returns both together."""
        return PossibleDrift(
            self.objects | other.objects, self.programs | other.programs, self.lost_ports | other.lost_ports
        )


CHANGED_BY_PODS = frozenset({"filter", "forwarding entry", "neighbour", "port", "uplink"})
"""Kinds of objects of a network that ADDs and DELs change, or that change when what a DEL leaves is removed.

Each change of the node's rules, as by the ADD of another network, may concern an uplink.
"""

CHANGED_BY_ROUTED_PODS = frozenset({"filter", "gateway", "neighbour", "port", "route"})
"""The same of index 0, where gateways are addresses of host ends, and each pod has routes."""

NO_DRIFT = PossibleDrift(frozenset(), frozenset(), frozenset())


def gone_links(changes: Sequence[KernelChange]) -> dict[int, str]:
    """Returns the links that were deleted, by index: what they had goes with them, and is notified, too."""
    return {each.ifindex: each.name for each in changes if isinstance(each, LinkGone) and not each.is_bridge_port}


def without_intermediate(changes: Sequence[KernelChange]) -> list[KernelChange]:
    """Returns the changes with only the last one of each link that was set: one that is made is down at first."""
    last = {(each.name, each.is_bridge_port): each for each in changes if isinstance(each, LinkSet)}
    return [each for each in changes if not isinstance(each, LinkSet)] + list(last.values())


def programs_of(changes: Sequence[KernelChange]) -> frozenset[str]:
    """Returns the names of the programs that changed rules."""
    return frozenset(each.program for each in changes if isinstance(each, FilterChanged) and each.program)
