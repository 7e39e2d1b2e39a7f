"""Table of CIDRs: finds the CIDR that contains an address with one lookup per prefix length in the table."""

from typing import Generic, TypeVar

from manager.parsing.addresses import Address, Network

V = TypeVar("V")


class CidrTable(Generic[V]):
    """CIDRs of both families, each with a value. CIDRs may overlap; of equal CIDRs, the first one counts."""

    def __init__(self) -> None:
        self._values: dict[int, dict[int, dict[int, V]]] = {4: {}, 6: {}}  # by family, prefix length and prefix

    def add(self, network: Network, value: V) -> None:
        """Adds a CIDR."""
        of_length = self._values[network.version].setdefault(network.prefixlen, {})
        # Host bits are shifted out, so all addresses of the CIDR have the same key.
        of_length.setdefault(int(network.network_address) >> network.max_prefixlen - network.prefixlen, value)

    def find(self, address: Address) -> V | None:
        """Returns the value of the widest CIDR that contains the address; None if there is none."""
        of_family = self._values[address.version]
        # At most 129 lookups, however many CIDRs the table has.
        for length in sorted(of_family):
            prefix = int(address) >> address.max_prefixlen - length
            if prefix in of_family[length]:
                return of_family[length][prefix]
        return None
