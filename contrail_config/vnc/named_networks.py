"""Networks by name: ours, which are in the cache, and foreign ones, which are looked for when they are named.

Whoever may write a NAD chooses names, so only the last of those that name nothing are remembered.
"""

import asyncio
import logging
from collections import OrderedDict
from typing import Final

from contrail_config.errors import StoreError
from contrail_config.objects import FqName, VirtualNetwork
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.foreign_networks import ForeignNetworks
from contrail_config.vnc.ipams import read_allocation_pools
from contrail_config.vnc.mapping import networks
from contrail_config.vnc.store_errors import as_store_error

log = logging.getLogger(__name__)

MAX_NAMES: Final = 1_000
"""Names of networks that do not exist, and as many of projects whose namespaces do not exist."""

INTERVAL: Final = 60.0
"""Seconds between looks for namespaces that did not exist."""


class NamedNetworks:
    """Adds foreign networks to the cache."""

    def __init__(self, client: VncClient, cache: Cache, foreign: ForeignNetworks) -> None:
        self._client = client
        self._cache = cache
        self._foreign = foreign
        self._without_namespace: OrderedDict[FqName, None] = OrderedDict()

    async def find(self, name: FqName) -> VirtualNetwork | None:
        """Returns the network of a name; None if there is none that may be used. Raises StoreError."""
        found = self._cached(name)
        if found is not None:
            return found
        if not await self._foreign.permits(name):
            self._note_missing_namespace(name)
            return None
        self._without_namespace.pop(name, None)
        with as_store_error(f"network {':'.join(name)}"):
            item = await self._foreign.look_for(name)
            if item is not None:
                self._cache.changed(networks.KIND, item)
                await read_allocation_pools(self._client, self._cache.addresses)
        self._foreign.forget(MAX_NAMES, is_used=lambda each: self._cached(each) is not None)
        return self._cached(name)

    async def find_used(self) -> None:
        """Shows the foreign networks in which pods are, so that these are repaired, and reads the pools of all.

        Raises StoreError.

        Not those in projects of the cluster, which may be waiting for their NADs to be taken over.
        """
        used = {interface.network for machine in self._cache.machines for interface in machine.interfaces}
        for name in sorted(used):
            if self._foreign.is_outside(name):
                await self.find(name)
        with as_store_error("allocation pools"):
            await read_allocation_pools(self._client, self._cache.addresses)

    async def run(self) -> None:
        """Shows networks of projects whose namespaces are created after they were named, until it is cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            await self.find_again()

    async def find_again(self) -> None:
        """Looks again for the names whose namespaces did not exist."""
        for name in list(self._without_namespace):
            try:
                await self.find(name)
            except StoreError as error:
                log.warning("%s", error)

    def _note_missing_namespace(self, name: FqName) -> None:
        if self._foreign.may_be_of_cluster(name):
            self._without_namespace[name] = None
            self._without_namespace.move_to_end(name)
            if len(self._without_namespace) > MAX_NAMES:
                self._without_namespace.popitem(last=False)

    def _cached(self, name: FqName) -> VirtualNetwork | None:
        return next(iter(self._cache.networks.named(":".join(name))), None)
