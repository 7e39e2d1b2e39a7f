"""Which of many CIDRs an address lies in, found by one look-up for each prefix length that occurs among them."""

from typing import Generic, TypeVar

from manager.parsing.addresses import Address, Network

V = TypeVar("V")


class CidrTable(Generic[V]):
    """CIDRs of both families, each with a value. They may overlap; of equal ones the first counts."""

    def __init__(self) -> None:
        self._values: dict[int, dict[int, dict[int, V]]] = {4: {}, 6: {}}  # by family, prefix length and prefix

    def add(self, network: Network, value: V) -> None:
        """Puts a CIDR in."""
        of_length = self._values[network.version].setdefault(network.prefixlen, {})
        of_length.setdefault(int(network.network_address) >> network.max_prefixlen - network.prefixlen, value)

    def find(self, address: Address) -> V | None:
        """The value of the widest CIDR that the address lies in; None if there is none."""
        of_family = self._values[address.version]
        for length in sorted(of_family):
            prefix = int(address) >> address.max_prefixlen - length
            if prefix in of_family[length]:
                return of_family[length][prefix]
        return None
