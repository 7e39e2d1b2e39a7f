"""Virtual routers: a node's reference to a virtual machine has its vrouter agent receive the pod.

The site's provisioning makes the virtual routers. That of a node has its name, or else one of its addresses, since a
vrouter may have another name than the node has in Kubernetes. A node without one has no vrouter agent.
"""

import contextlib
import ipaddress
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from contrail_config.vnc.client import Object, VncClient
from contrail_config.vnc.errors import VncNotFoundError
from contrail_config.vnc.keyed_locks import KeyedLocks
from contrail_config.vnc.mapping.routers import KIND
from contrail_config.vnc.reference import Reference
from contrail_config.vnc.router_directory import RouterDirectory

log = logging.getLogger(__name__)

_PARENT: Final = "default-global-system-config"
_MAX_NAMED: Final = 5  # virtual routers in a message

NodeAddresses = Callable[[str], Awaitable[Sequence[str]]]
"""Returns the addresses of a node; none if they are unknown."""


async def no_addresses(_node: str) -> Sequence[str]:
    """Nothing is known about the addresses of nodes."""
    return ()


class VirtualRouters:
    """Links virtual machines to the virtual routers of their nodes."""

    def __init__(self, client: VncClient, addresses_of: NodeAddresses = no_addresses) -> None:
        self._client = client
        self._addresses_of = addresses_of
        self._locks = KeyedLocks()
        self.directory = RouterDirectory(client)
        self._uuids: dict[str, str] = {}
        self._addresses: dict[str, set[IPv4Address | IPv6Address]] = {}  # of nodes that were looked for by address
        self._missing: set[str] = set()

    @property
    def has_missing(self) -> bool:
        """Whether a node had no virtual router when it was last looked for."""
        return bool(self._missing)

    async def link(self, node: str, machine: Reference) -> None:
        """Adds the reference. No effect if the node has no virtual router. Idempotent."""
        router = await self.find(node)
        if router is None:
            return
        try:
            await self._client.add_reference(KIND, router, machine)
        except VncNotFoundError:
            # deleted since, and perhaps provisioned again; or the virtual machine is what was not found
            self._uuids.pop(node, None)
            again = await self.find(node)
            if again == router:
                raise
            if again is not None:
                await self._client.add_reference(KIND, again, machine)

    async def unlink(self, node: str, machine: Reference) -> None:
        """Removes the reference. Idempotent."""
        router = await self.find(node)
        if router is not None:
            with contextlib.suppress(VncNotFoundError):
                await self._client.remove_reference(KIND, router, machine)

    async def find(self, node: str) -> str | None:
        """Returns the uuid of a node's virtual router; None if it has none."""
        async with self._locks.held([node]):  # the pods of a node ask at the same time
            if node not in self._uuids:
                found = await self._look_for(node)
                if found is None:
                    self._missing.add(node)
                else:
                    self._missing.discard(node)
                    self._uuids[node] = found
            return self._uuids.get(node)

    async def close(self) -> None:
        """Stops what is in progress."""
        await self.directory.close()

    async def _look_for(self, node: str) -> str | None:
        is_new = node not in self._missing
        if is_new:  # else the list is enough, which has the names too
            with contextlib.suppress(VncNotFoundError):
                return await self._client.find_uuid(KIND, [_PARENT, node])
        found = await self._listed(node)
        if len(found) == 1:
            return str(found[0]["uuid"])
        if found and is_new:
            names = ", ".join(sorted(each["fq_name"][-1] for each in found)[:_MAX_NAMED])
            log.warning("node %s: %d virtual routers are like it, none is used: %s", node, len(found), names)
        elif is_new:
            log.warning("node %s: no virtual router of its name or address: no vrouter agent receives its pods", node)
        return None

    async def _listed(self, node: str) -> list[Object]:
        """Returns the virtual routers that have the node's name, else its address, else its name in other case."""
        addresses = await self._addresses_of_node(node)
        routers = await self.directory.all()
        choices = (
            [each for each in routers if each["fq_name"][-1] == node],
            [each for each in routers if _parsed([str(each.get("virtual_router_ip_address"))]) & addresses],
            [each for each in routers if each["fq_name"][-1].lower() == node.lower()],
        )
        return next(filter(None, choices), [])

    async def _addresses_of_node(self, node: str) -> set[IPv4Address | IPv6Address]:
        if node not in self._addresses and (addresses := _parsed(await self._addresses_of(node))):
            self._addresses[node] = addresses
        return self._addresses.get(node, set())


def _parsed(texts: Iterable[str]) -> set[IPv4Address | IPv6Address]:
    addresses = set()
    for text in texts:
        with contextlib.suppress(ValueError):
            addresses.add(ipaddress.ip_address(text))
    return addresses
