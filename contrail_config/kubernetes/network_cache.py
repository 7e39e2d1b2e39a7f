"""What this process knows of networks: from watches, and from its own requests, of which the watches tell later.

A network that is known by a request, and of which no watch has told yet, may be gone when all are listed anew: the list
tells its end by what was seen last, or not at all. So it is in doubt then, until it was asked for.
"""

from collections.abc import Callable

from contrail_config.kube.object_cache import Added, Change, Deleted, Listed, Modified
from contrail_config.kube.resource_versions import is_newer
from contrail_config.kubernetes.kinds import VirtualNetworkObject
from contrail_config.objects import VirtualNetwork


class NetworkCache:
    """Settled networks by uuid; `forgotten` is told which one is known no more."""

    def __init__(self, forgotten: Callable[[str], None]) -> None:
        self._forgotten = forgotten
        self._known: dict[str, VirtualNetworkObject] = {}
        self._untold: set[str] = set()
        self._doubtful: set[str] = set()

    def get(self, uuid: str) -> VirtualNetwork | None:
        """The network, if it is known."""
        known = self._known.get(uuid)
        return None if known is None else known.spec

    def is_certain(self, uuid: str) -> bool:
        """Whether it is known, and no list has left it in doubt."""
        return uuid in self._known and uuid not in self._doubtful

    def take(self, item: VirtualNetworkObject) -> None:
        """Takes what the server answered, unless a watch told of something newer meanwhile."""
        uuid = item.spec.uuid
        self._doubtful.discard(uuid)
        known = self._known.get(uuid)
        if known is None or is_newer(item.metadata.resource_version, known.metadata.resource_version):
            self._known[uuid] = item
            self._untold.add(uuid)

    def follow(self, change: Change[VirtualNetworkObject]) -> None:
        """Takes news of a network, unless it is known to be newer."""
        match change:
            case Added(object=item) | Modified(object=item) if item.is_settled and not self._is_older(item):
                self._known[item.spec.uuid] = item
                self._untold.discard(item.spec.uuid)
                self._doubtful.discard(item.spec.uuid)
            case Deleted(object=item) if not self._is_older(item):
                self.forget(item.spec.uuid)
            case Listed():
                self._doubtful |= self._untold

    def forget(self, uuid: str) -> None:
        """It is gone."""
        self._known.pop(uuid, None)
        self._untold.discard(uuid)
        self._doubtful.discard(uuid)
        self._forgotten(uuid)

    def _is_older(self, item: VirtualNetworkObject) -> bool:
        known = self._known.get(item.spec.uuid)
        if known is None or known.metadata.resource_version == item.metadata.resource_version:
            return False
        return not is_newer(item.metadata.resource_version, known.metadata.resource_version)
