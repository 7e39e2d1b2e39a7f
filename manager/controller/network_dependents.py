"""NADs to reconcile when the network they depend on changes: at most one entry per NAD.

A NAD depends on one network at a time: the one it refers to, or the one that keeps it from having its own. Its tenant
can change the reference at will, so an earlier entry must not stay.
"""

from contrail_config.objects import FqName


class NetworkDependents:
    """NADs by `namespace/name`."""

    def __init__(self) -> None:
        self._networks: dict[str, FqName] = {}  # by NAD
        self._nads: dict[FqName, set[str]] = {}

    def __len__(self) -> int:
        return len(self._networks)

    def add(self, nad: str, network: FqName) -> None:
        """Makes the NAD depend on this network, and on no other."""
        self.discard(nad)
        self._networks[nad] = network
        self._nads.setdefault(network, set()).add(nad)

    def discard(self, nad: str) -> None:
        """Removes the NAD. Idempotent."""
        network = self._networks.pop(nad, None)
        if network is None:
            return
        nads = self._nads[network]
        nads.remove(nad)
        if not nads:
            del self._nads[network]

    def pop(self, network: FqName) -> set[str]:
        """Removes and returns the NADs that depend on the network."""
        nads = self._nads.pop(network, set())
        for nad in nads:
            del self._networks[nad]
        return nads
