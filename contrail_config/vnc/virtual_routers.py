"""Virtual routers: a node's reference to a virtual machine has its vrouter agent receive the pod.

The site's provisioning makes the virtual routers. A node without one has no vrouter agent, but may have ours.
"""

import contextlib
import logging
from typing import Final

from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncNotFoundError
from contrail_config.vnc.reference import Reference

log = logging.getLogger(__name__)

KIND: Final = "virtual-router"
_PARENT: Final = "default-global-system-config"


class VirtualRouters:
    """Links virtual machines to the virtual router that is named after their node."""

    def __init__(self, client: VncClient) -> None:
        self._client = client
        self._uuids: dict[str, str] = {}
        self._missing: set[str] = set()

    async def link(self, node: str, machine: Reference) -> None:
        """Adds the reference. No effect if the node has no virtual router. Idempotent."""
        router = await self._find(node)
        if router is not None:
            await self._client.add_reference(KIND, router, machine)

    async def unlink(self, node: str, machine: Reference) -> None:
        """Removes the reference. Idempotent."""
        router = await self._find(node)
        if router is not None:
            with contextlib.suppress(VncNotFoundError):
                await self._client.remove_reference(KIND, router, machine)

    async def _find(self, node: str) -> str | None:
        if node not in self._uuids:
            try:
                self._uuids[node] = await self._client.find_uuid(KIND, [_PARENT, node])
            except VncNotFoundError:
                if node not in self._missing:
                    log.warning("node %s: no virtual router of this name: only our own agent serves its pods", node)
                    self._missing.add(node)
                return None
            self._missing.discard(node)
        return self._uuids[node]
