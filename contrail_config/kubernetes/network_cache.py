"""Cache of networks, filled by the watch and by this process's own requests, which the watch reports later.

A network that is known from a request, but not yet from the watch, may be deleted when the watch starts again with a
list: the list reports such a deletion with an older version or not at all. Such a network is then uncertain until it is
read again.
"""

from collections.abc import Callable

from contrail_config.kube.object_cache import Added, Deleted, Listed, Modified, ObjectChange
from contrail_config.kube.resource_versions import is_newer
from contrail_config.kubernetes.kinds import VirtualNetworkObject
from contrail_config.objects import VirtualNetwork


class NetworkCache:
    """Confirmed networks by uuid. Calls `on_removed` with each removed one."""

    def __init__(self, on_removed: Callable[[VirtualNetwork], None]) -> None:
        self._on_removed = on_removed
        self._networks: dict[str, VirtualNetworkObject] = {}
        self._unobserved: set[str] = set()  # known from a request only
        self._uncertain: set[str] = set()

    def get(self, uuid: str) -> VirtualNetwork | None:
        """Returns the network; None if it is not cached."""
        cached = self._networks.get(uuid)
        return None if cached is None else cached.spec

    def is_certain(self, uuid: str) -> bool:
        """Returns whether the network is cached and not uncertain."""
        return uuid in self._networks and uuid not in self._uncertain

    def put(self, item: VirtualNetworkObject) -> None:
        """Stores a response of the server, unless the watch has delivered a newer version meanwhile."""
        uuid = item.spec.uuid
        self._uncertain.discard(uuid)
        cached = self._networks.get(uuid)
        if cached is None or is_newer(item.metadata.resource_version, cached.metadata.resource_version):
            self._networks[uuid] = item
            self._unobserved.add(uuid)

    def apply(self, change: ObjectChange[VirtualNetworkObject]) -> None:
        """Applies a change of the watch, unless a newer version is cached."""
        match change:
            case Added(object=item) | Modified(object=item) if item.is_confirmed and not self._is_older(item):
                self._networks[item.spec.uuid] = item
                self._unobserved.discard(item.spec.uuid)
                self._uncertain.discard(item.spec.uuid)
            case Deleted(object=item) if not self._is_older(item):
                self.remove(item.spec.uuid)
            case Listed():
                self._uncertain |= self._unobserved  # the list may be older than our request, or miss a deletion

    def remove(self, uuid: str) -> None:
        """Removes a deleted network. Idempotent."""
        removed = self._networks.pop(uuid, None)
        self._unobserved.discard(uuid)
        self._uncertain.discard(uuid)
        if removed is not None:
            self._on_removed(removed.spec)

    def _is_older(self, item: VirtualNetworkObject) -> bool:
        cached = self._networks.get(item.spec.uuid)
        if cached is None or cached.metadata.resource_version == item.metadata.resource_version:
            return False
        return not is_newer(item.metadata.resource_version, cached.metadata.resource_version)
