"""Index of the network slices that this node follows, as received from the config store.

A network is complete once all of its slices were listed, and stays so while a watch is interrupted: what is known then
stays in use, and is corrected by the next list.
"""

from collections.abc import Collection, Iterator, Mapping

from contrail_config.objects import NetworkSlice
from contrail_config.store import Change, ChangeType


class SliceIndex:
    """Slices by network and node."""

    def __init__(self) -> None:
        self._slices: dict[str, dict[str, NetworkSlice]] = {}
        self._complete: set[str] = set()

    def of(self, network_uuid: str) -> Mapping[str, NetworkSlice]:
        """Returns the known slices of a network, by node."""
        return self._slices.get(network_uuid, {})

    def is_complete(self, network_uuid: str) -> bool:
        """Returns whether all slices of the network were listed."""
        return network_uuid in self._complete

    def all(self) -> Iterator[NetworkSlice]:
        """Yields all known slices."""
        for slices in self._slices.values():
            yield from slices.values()

    def forget(self, network_uuid: str) -> None:
        """Removes a network that is no longer followed. Idempotent."""
        self._slices.pop(network_uuid, None)
        self._complete.discard(network_uuid)

    def listing(self, networks: Collection[str]) -> "Listing":
        """Returns the target of a new watch of these networks, which begins with a list."""
        return Listing(self, networks)

    def put(self, item: NetworkSlice) -> None:
        """Adds a slice, or replaces it."""
        self._slices.setdefault(item.network_uuid, {})[item.node] = item

    def remove(self, network_uuid: str, node: str) -> None:
        """Removes a slice. Idempotent."""
        self._slices.get(network_uuid, {}).pop(node, None)

    def complete(self, network_uuid: str) -> None:
        """Notes that all slices of the network are known."""
        self._complete.add(network_uuid)


class Listing:
    """Applies the changes of one watch to the index: at the end of its list, slices that were not in it are removed."""

    def __init__(self, index: SliceIndex, networks: Collection[str]) -> None:
        self._index = index
        self._networks = frozenset(networks)
        self._listed: set[tuple[str, str]] | None = set()

    def apply(self, change: Change[NetworkSlice]) -> None:
        """Applies one change."""
        item = change.object
        if item is None:
            self._end_list()
        elif item.network_uuid not in self._networks:
            return
        elif change.type is ChangeType.DELETED:
            self._index.remove(item.network_uuid, item.node)
        else:
            self._index.put(item)
            if self._listed is not None:
                self._listed.add((item.network_uuid, item.node))

    def _end_list(self) -> None:
        if self._listed is None:
            return
        for uuid in self._networks:
            for node in [node for node in self._index.of(uuid) if (uuid, node) not in self._listed]:
                self._index.remove(uuid, node)
            self._index.complete(uuid)
        self._listed = None
