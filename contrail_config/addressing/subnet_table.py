"""Subnets of one family of a network, searched by address."""

import bisect
import itertools
from collections.abc import Iterator, Sequence

from contrail_config.addressing.notation import family_of
from contrail_config.addressing.subnet import SubnetBounds, subnet_bounds
from contrail_config.objects import Subnet


class SubnetTable:
    """Iteration yields the subnets of `family` (4 or 6) in the order in which they are used.

    Raises ValueError for a subnet that is malformed or overlaps another one.
    """

    def __init__(self, subnets: Sequence[Subnet], *, family: int) -> None:
        self._bounds = [subnet_bounds(subnet) for subnet in subnets if family_of(subnet.cidr) == family]
        self._sorted = sorted(self._bounds, key=lambda each: each.first)
        for one, next_one in itertools.pairwise(self._sorted):
            if next_one.first in one:
                raise ValueError(f"subnets {one.cidr} and {next_one.cidr} overlap")

    def __iter__(self) -> Iterator[SubnetBounds]:
        return iter(self._bounds)

    def find(self, address: int) -> SubnetBounds | None:
        """Returns the subnet that contains the address; None if there is none."""
        return next(self.overlapping(address, address), None)

    def overlapping(self, first: int, last: int) -> Iterator[SubnetBounds]:
        """Yields the subnets that have an address from `first` to `last`, lowest first."""
        start = bisect.bisect_left(self._sorted, first, key=lambda each: each.last)
        return itertools.takewhile(lambda each: each.first <= last, self._sorted[start : start + last - first + 1])
