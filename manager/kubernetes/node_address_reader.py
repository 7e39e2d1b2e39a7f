"""Reader of the addresses of single nodes. Needs the verb list of nodes."""

import logging
from collections.abc import Sequence

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeError
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.node_addresses import NODES, tunnel_addresses

log = logging.getLogger(__name__)


class NodeAddressReader:
    """Reads a node when it is asked for: nodes are many, and few are asked for."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def __call__(self, node: str) -> Sequence[str]:
        """Returns the internal addresses of a node, or those of its annotation; none if it cannot be read."""
        try:
            found = await self._client.list_each(NODES, Selector(fields=f"metadata.name={node}"))
        except KubeError as error:
            log.warning("node %s: its addresses cannot be read: %s", node, error)
            return ()
        return [
            address for each in found if not isinstance(each, UndecodableObject) for address in tunnel_addresses(each)
        ]
