"""Networks by name: ours, which are in the cache, and foreign ones, which are looked for when they are named."""

from contrail_config.objects import FqName, VirtualNetwork
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.foreign_networks import ForeignNetworks
from contrail_config.vnc.mapping import networks
from contrail_config.vnc.store_errors import as_store_error


class NamedNetworks:
    """Adds foreign networks to the cache."""

    def __init__(self, cache: Cache, foreign: ForeignNetworks) -> None:
        self._cache = cache
        self._foreign = foreign

    async def find(self, name: FqName) -> VirtualNetwork | None:
        """Returns the network of a name; None if there is none that may be used. Raises StoreError."""
        found = self._cached(name)
        if found is not None or not self._foreign.permits(name):
            return found
        with as_store_error(f"network {':'.join(name)}"):
            item = await self._foreign.look_for(name)
        if item is not None:
            self._cache.changed(networks.KIND, item)
        return self._cached(name)

    async def find_used(self) -> None:
        """Shows the foreign networks in which pods are, so that these are repaired. Raises StoreError.

        Not those in projects of the cluster, which may be waiting for their NADs to be taken over.
        """
        used = {interface.network for machine in self._cache.machines for interface in machine.interfaces}
        for name in sorted(used):
            if self._foreign.is_outside(name):
                await self.find(name)

    def _cached(self, name: FqName) -> VirtualNetwork | None:
        return next(iter(self._cache.networks.named(":".join(name))), None)
