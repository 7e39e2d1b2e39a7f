"""Cache of one cluster's objects on the server: networks, virtual machines and addresses."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from contrail_config.objects import VirtualMachine, VirtualNetwork
from contrail_config.vnc.address_cache import AddressCache
from contrail_config.vnc.cached_objects import CachedObjects
from contrail_config.vnc.cached_routers import CachedRouters
from contrail_config.vnc.mapping import addresses, machines, networks, routers
from contrail_config.vnc.other_writers import OtherWriters

log = logging.getLogger(__name__)

FIELDS: Mapping[str, Sequence[str]] = {
    networks.KIND: networks.FIELDS,
    addresses.KIND: addresses.FIELDS,
    machines.KIND: machines.FIELDS,
}
"""Types that writers follow, in this order, and their fields."""

S = TypeVar("S")

ReadForeign = Callable[[Mapping[str, Any]], VirtualNetwork | None]
"""Returns the network that others made if it is in the object and shown."""


def _no_foreign(_item: Mapping[str, Any]) -> None:
    """No network of others is shown."""


class Cache:
    """What the server has of `cluster`. Objects that cannot be read are skipped, and logged.

    `read_foreign` returns the networks of others that are shown.
    """

    def __init__(self, cluster: str, *, read_foreign: ReadForeign = _no_foreign) -> None:
        self._cluster = cluster
        self._read_foreign = read_foreign
        self._changed: set[str] | None = None  # since a comparison began
        self.networks: CachedObjects[VirtualNetwork] = CachedObjects()
        self.machines: CachedObjects[VirtualMachine] = CachedObjects()
        self.addresses = AddressCache()
        self.routers = CachedRouters()
        self.other_writers = OtherWriters(cluster)

    def reopened(self) -> None:
        """Notes that all objects are requested."""
        self.networks.reopened()
        self.machines.reopened()
        self.addresses.reopened()

    def comparing(self) -> None:
        """Notes that a list begins beside a watch, whose events may be newer than the list."""
        self._changed = set()

    def compared(self, kind: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Applies all objects of a type, listed since `comparing`, where no event was newer."""
        newer, self._changed = self._changed or set(), None
        self._list(kind, items, newer=newer)

    def listed(self, kind: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Applies all objects of a type."""
        self._list(kind, items, newer=())

    def _list(self, kind: str, items: Sequence[Mapping[str, Any]], *, newer: Collection[str]) -> None:
        if kind == networks.KIND:
            self.networks.listed(self._found(items, self._network), newer=newer)
        elif kind == machines.KIND:
            self.other_writers.listed(items)
            self.machines.listed(self._found(items, self._machine), newer=newer)
        elif kind == addresses.KIND:
            self.addresses.listed(self._found(items, self._address), newer=newer)
        elif kind == routers.KIND:
            self.routers.listed(self._found(items, routers.read_router), newer=newer)

    def changed(self, kind: str, item: Mapping[str, Any]) -> None:
        """Applies one object as it is now."""
        self._note(item["uuid"])
        if kind == networks.KIND:
            self.networks.saw(item["uuid"], self._network(item))
        elif kind == machines.KIND:
            self.other_writers.saw(item)
            self.machines.saw(item["uuid"], self._machine(item))
        elif kind == addresses.KIND:
            self.addresses.saw(item["uuid"], self._address(item))
        elif kind == routers.KIND:
            self.routers.saw(item["uuid"], routers.read_router(item))

    def deleted(self, kind: str, uuid: str) -> None:
        """Applies a deletion, also of what is not there."""
        self._note(uuid)
        if kind == networks.KIND:
            self.networks.saw(uuid, None)
        elif kind == machines.KIND:
            self.other_writers.deleted(uuid)
            self.machines.saw(uuid, None)
        elif kind == addresses.KIND:
            self.addresses.saw(uuid, None)
        elif kind == routers.KIND:
            self.routers.saw(uuid, None)

    def _note(self, uuid: str) -> None:
        if self._changed is not None:
            self._changed.add(uuid)

    def _found(self, items: Sequence[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], S | None]) -> dict[str, S]:
        read_items = {item["uuid"]: read(item) for item in items}
        return {uuid: found for uuid, found in read_items.items() if found is not None}

    def _network(self, item: Mapping[str, Any]) -> VirtualNetwork | None:
        return self._read(self._own_or_foreign, item)

    def _own_or_foreign(self, item: Mapping[str, Any], cluster: str) -> VirtualNetwork | None:
        foreign = self._read_foreign(item)
        network = networks.read_network(item, cluster) if foreign is None else foreign
        if network is not None:
            self.addresses.set_flat_ipam(network.uuid, networks.flat_ipam(item))
            self.addresses.set_ranges(network.uuid, networks.allocation_pools(item))
        return network

    def _machine(self, item: Mapping[str, Any]) -> VirtualMachine | None:
        return self._read(machines.read_machine, item)

    def _address(self, item: Mapping[str, Any]) -> addresses.AddressRecord | None:
        return self._read(addresses.read_address, item)

    def _read(self, read: Callable[[Mapping[str, Any], str], S | None], item: Mapping[str, Any]) -> S | None:
        try:
            return read(item, self._cluster)
        except ValueError as error:
            log.error("%s: skipped", error)  # noqa: TRY400 - the message says what is wrong and where
            return None
        except (KeyError, TypeError) as error:
            log.error("object %s: skipped, malformed: %r", item.get("uuid"), error)  # noqa: TRY400 - as above
            return None
