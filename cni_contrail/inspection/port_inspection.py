"""Inspects the MTU of host ends, in the namespaces of networks and at index 0. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cni_contrail.datapath.port_mtu import LowMtu
from cni_contrail.inspection.difference import WRONG, Difference


def host_end_mtus(vni: int, low: Iterable[LowMtu]) -> Iterator[Difference]:
    """Yields host ends whose MTU is too low, with the MTU that was found and the one that is needed."""
    for link, found, needed in sorted(low):
        yield Difference(vni, WRONG, f"MTU of host end {link.name}", f"{found}, not {needed}")
