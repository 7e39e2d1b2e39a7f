"""What reconciling the networks of a node did, and what it could not do, by network."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from cni_contrail.datapath.fabric_routes import RefusedRoute
from cni_contrail.datapath.filter_rules import Drops
from cni_contrail.link.named_tuple import NamedTuple

INDEX_0 = 0
"""Key of the routed ports in an outcome, whose other keys are VNIs; no network has this one."""

_Value = TypeVar("_Value")


class NodeOutcome(NamedTuple):
    """By number of the network: changes made, links of desired ports that do not exist, and what prevented the rest.

    `links` are index and alias of each link that may be a pod's, as they were when they could be read last.
    `removed` are networks whose namespaces were removed. `drops` of a network without an entry are unknown. `refused`
    are subnets that get no route, which is as it should be. `removed_tables` of nf_tables were other programs'.
    `unconnected` are networks whose pods on other nodes were not made reachable, since that failed.
    """

    changes: dict[int, int]
    missing: dict[int, frozenset[str]]
    links: dict[int, frozenset[tuple[int, str]]]
    problems: dict[int, str]
    removed: set[int]
    drops: dict[int, Drops]
    refused: list[RefusedRoute]
    removed_tables: dict[int, tuple[str, ...]]
    unconnected: set[int]

    @classmethod
    def nothing(cls) -> NodeOutcome:
        """Returns the outcome without any network."""
        return cls({}, {}, {}, {}, set(), {}, [], {}, set())

    def add_problem(self, vni: int, problem: str | None) -> None:
        """Adds what is wrong with a network, if anything is, to what is known of it; nothing is said twice."""
        known = self.problems.get(vni, "")
        if problem is not None and problem not in known:
            self.problems[vni] = f"{known}; {problem}" if known else problem

    def updated(self, later: NodeOutcome, networks: Collection[int]) -> NodeOutcome:
        """Returns the outcome of all networks after a later one of some of them."""
        return NodeOutcome(
            _updated(self.changes, later.changes, networks),
            _updated(self.missing, later.missing, networks),
            self.links | later.links,
            _updated(self.problems, later.problems, networks),
            self.removed | later.removed,
            _updated(self.drops, later.drops, networks),
            [each for each in self.refused if each.vni not in networks]
            + [each for each in later.refused if each.vni in networks],
            _updated(self.removed_tables, later.removed_tables, networks),
            self.unconnected.difference(networks) | later.unconnected.intersection(networks),
        )


def _updated(before: dict[int, _Value], later: dict[int, _Value], networks: Collection[int]) -> dict[int, _Value]:
    kept = {vni: value for vni, value in before.items() if vni not in networks}
    return kept | {vni: value for vni, value in later.items() if vni in networks}
