"""The addresses of one family in one network: which comes next, and why a wished one cannot be given.

The next address is the one after the last given, round and round, so that a freed address is the last to come again;
subnets are used in their order, the next one when the one before is full. A freed address may be held back on top of
that (its old user's neighbours may still send to it): held, it is neither given nor granted to a wish.

The pool knows that an address is taken or held, not by whom and until when: that is the store's to keep.
"""

import itertools
from collections.abc import Sequence

from contrail_config.addressing.integer_set import IntegerSet
from contrail_config.addressing.notation import family_of
from contrail_config.addressing.subnet import SubnetBounds, subnet_bounds
from contrail_config.objects import Subnet


class AddressPool:
    """All addresses of `family` (4 or 6) in `subnets`, as ints, none of them taken yet.

    Raises ValueError for a subnet that is malformed or overlaps another one.
    """

    def __init__(self, subnets: Sequence[Subnet], *, family: int) -> None:
        bounds = [subnet_bounds(subnet) for subnet in subnets if family_of(subnet.cidr) == family]
        _refuse_overlap(bounds)
        self._parts = [_SubnetPool(each) for each in bounds]

    def choose(self) -> int | None:
        """The address to give next; None if none is free."""
        chosen = (part.choose() for part in self._parts)
        return next((address for address in chosen if address is not None), None)

    def refusal(self, address: int) -> str | None:
        """Why the address cannot be given; None if it can."""
        part = self._part_of(address)
        return "it is in no subnet of the network" if part is None else part.refusal(address)

    def bounds(self, address: int) -> SubnetBounds:
        """The subnet that an address belongs to. Raises ValueError if it is in none."""
        part = self._part_of(address)
        if part is None:
            raise ValueError(f"address {address} is in no subnet of the pool")
        return part.bounds

    def take(self, address: int) -> None:
        """Marks the address as given: the next search starts after it. Means nothing outside the subnets."""
        if part := self._part_of(address):
            part.take(address)

    def hold(self, address: int) -> None:
        """Marks the address as freed but held back. Means nothing outside the subnets."""
        if part := self._part_of(address):
            part.hold(address)

    def free(self, address: int) -> None:
        """Marks the address as free again, unless it is one that is never given."""
        if part := self._part_of(address):
            part.free(address)

    def _part_of(self, address: int) -> "_SubnetPool | None":
        return next((part for part in self._parts if address in part.bounds), None)


class _SubnetPool:
    """One subnet of the pool; its bits are counted from its first address, so that they stay small."""

    def __init__(self, bounds: SubnetBounds) -> None:
        self.bounds = bounds
        self._next = 0
        self._held: set[int] = set()
        self._unfree = IntegerSet()
        for address in bounds.reserved:
            self._unfree.add(address - bounds.first)

    def choose(self) -> int | None:
        return self._first_free(self._next) or self._first_free(0)

    def refusal(self, address: int) -> str | None:
        if reason := self.bounds.never_given(address):
            return reason
        if address in self._held:
            return "it is still held back after its release"
        if address - self.bounds.first in self._unfree:
            return "it is taken by another interface"
        return None

    def take(self, address: int) -> None:
        self._held.discard(address)
        self._unfree.add(address - self.bounds.first)
        self._next = address - self.bounds.first + 1

    def hold(self, address: int) -> None:
        self._held.add(address)
        self._unfree.add(address - self.bounds.first)

    def free(self, address: int) -> None:
        self._held.discard(address)
        if address not in self.bounds.reserved:
            self._unfree.discard(address - self.bounds.first)

    def _first_free(self, start: int) -> int | None:
        """The first free address from an offset on. Each excluded range is passed in one step, however large it is."""
        while (address := self.bounds.first + self._unfree.first_missing(start)) in self.bounds:
            end = self.bounds.exclusion_end(address)
            if end is None:
                return address
            start = end + 1 - self.bounds.first
        return None


def _refuse_overlap(bounds: Sequence[SubnetBounds]) -> None:
    for one, next_one in itertools.pairwise(sorted(bounds, key=lambda each: each.first)):
        if next_one.first in one:
            raise ValueError(f"subnets {one.cidr} and {next_one.cidr} overlap")
