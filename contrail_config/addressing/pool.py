"""Address pool: selects the next free address of one family in one network, and says why an address is not free.

Selection is round robin: it starts after the last allocated address, so a released address is reused as late as
possible. Subnets are used in order; the next one is used when the previous one is full. A released address can also be
held, since neighbours of its previous owner may still send to it: a held address is not allocated, even on request.

The pool knows that an address is allocated or held. The store knows by which owner and until when.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from contrail_config.addressing.integer_set import IntegerSet
from contrail_config.addressing.subnet import SubnetBounds
from contrail_config.addressing.subnet_table import SubnetTable
from contrail_config.objects import Subnet

ALLOCATED: Final = "it is already allocated to another interface"
HELD: Final = "it is still held after its release"


Range = tuple[int, int]
"""First and last address."""


class AddressPool:
    """All addresses of `family` (4 or 6) in `subnets`, as ints. Initially all are free.

    `selected`: ranges by CIDR, in order, from which the next free address is selected; without an entry, all of the
    subnet. Addresses outside of them can be requested.

    Raises ValueError for a subnet that is malformed or overlaps another one.
    """

    def __init__(
        self, subnets: Sequence[Subnet], *, family: int, selected: Mapping[str, Sequence[Range]] = MappingProxyType({})
    ) -> None:
        self._subnets = [_SubnetPool(each, selected.get(each.cidr, ())) for each in SubnetTable(subnets, family=family)]

    def next_free(self) -> int | None:
        """Returns the address to allocate next; None if none is free."""
        candidates = (subnet.next_free() for subnet in self._subnets)
        return next((address for address in candidates if address is not None), None)

    def unavailable_reason(self, address: int) -> str | None:
        """Returns why the address cannot be allocated; None if it can."""
        subnet = self._subnet_of(address)
        return "it is in no subnet of the network" if subnet is None else subnet.unavailable_reason(address)

    def contains(self, address: int) -> bool:
        """Whether a subnet of the pool contains the address."""
        return self._subnet_of(address) is not None

    def bounds(self, address: int) -> SubnetBounds:
        """Returns the subnet that contains the address. Raises ValueError if there is none."""
        subnet = self._subnet_of(address)
        if subnet is None:
            raise ValueError(f"address {address} is in no subnet of the pool")
        return subnet.bounds

    def mark_allocated(self, address: int) -> None:
        """Marks the address as allocated: the next search starts after it. No effect outside the subnets."""
        if subnet := self._subnet_of(address):
            subnet.mark_allocated(address)

    def mark_held(self, address: int) -> None:
        """Marks the address as released but held. No effect outside the subnets."""
        if subnet := self._subnet_of(address):
            subnet.mark_held(address)

    def mark_free(self, address: int) -> None:
        """Marks the address as free, unless it is reserved. No effect outside the subnets."""
        if subnet := self._subnet_of(address):
            subnet.mark_free(address)

    def _subnet_of(self, address: int) -> "_SubnetPool | None":
        return next((subnet for subnet in self._subnets if address in subnet.bounds), None)


class _SubnetPool:
    """One subnet of the pool. Numbers are offsets from its first address, which keeps IPv6 numbers small."""

    def __init__(self, bounds: SubnetBounds, selected: Sequence[Range]) -> None:
        self.bounds = bounds
        self._selected = selected or [(bounds.first, bounds.last)]
        self._next = 0
        self._held: set[int] = set()
        self._used = IntegerSet()  # offsets of allocated, held and reserved addresses
        for address in bounds.reserved:
            self._used.add(address - bounds.first)

    def next_free(self) -> int | None:
        return next((found for start in (self._next, 0) for found in self._free_from(start)), None)

    def unavailable_reason(self, address: int) -> str | None:
        if reason := self.bounds.unavailable_reason(address):
            return reason
        if address in self._held:
            return HELD
        if address - self.bounds.first in self._used:
            return ALLOCATED
        return None

    def mark_allocated(self, address: int) -> None:
        self._held.discard(address)
        self._used.add(address - self.bounds.first)
        self._next = address - self.bounds.first + 1

    def mark_held(self, address: int) -> None:
        self._held.add(address)
        self._used.add(address - self.bounds.first)

    def mark_free(self, address: int) -> None:
        self._held.discard(address)
        # A subnet update can reserve an address that is still allocated; its release must not free it.
        if address not in self.bounds.reserved:
            self._used.discard(address - self.bounds.first)

    def _free_from(self, start: int) -> Iterator[int]:
        """Yields the first free address of each range, from an offset on."""
        for first, last in self._selected:
            found = self._first_free(max(start, first - self.bounds.first))
            if found is not None and found <= last:
                yield found

    def _first_free(self, start: int) -> int | None:
        """Returns the first free address from an offset on. Skips each excluded range in one step."""
        while (address := self.bounds.first + self._used.first_missing(start)) in self.bounds:
            end = self.bounds.exclusion_end(address)
            if end is None:
                return address
            start = end + 1 - self.bounds.first
        return None
