"""Leftovers of networks: hidden networks and IPAMs of a writer that was killed, or of requests that failed.

A deleted network is hidden while addresses of it are held, and is deleted with the last of them. Its IPAM is deleted
after it, and created before it. A retired network is deleted with the last address of ours, unless others refer to it,
such as an interface that somebody made: nobody tells when they no longer do.
"""

import contextlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from contrail_config.errors import InUseError
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.keyed_locks import KeyedLocks
from contrail_config.vnc.mapping import networks
from contrail_config.vnc.network_writer import NetworkWriter
from contrail_config.vnc.store_errors import as_store_error

log = logging.getLogger(__name__)


class NetworkLeftovers:
    """Finds them on the server. `locks` are those of the writers, by uuid and by name of the network."""

    def __init__(self, client: VncClient, writer: NetworkWriter, locks: KeyedLocks, cluster: str) -> None:
        self._client = client
        self._writer = writer
        self._locks = locks
        self._cluster = cluster
        self._suspects: set[str] = set()

    @property
    def has_suspects(self) -> bool:
        """Whether the last round found an IPAM whose network may be about to be created."""
        return bool(self._suspects)

    async def delete_hidden(self) -> None:
        """Deletes hidden and retired networks that nothing uses any more, and duplicates. Raises StoreError."""
        with as_store_error("hidden networks"):
            listed = await self._client.list_all(networks.KIND, fields=["annotations"])
        await self._delete_duplicates(listed)
        for item in listed:
            if networks.is_hidden(item, self._cluster):
                async with self._locks.held([item["uuid"]]):
                    await self._writer.delete_hidden(item["uuid"])
            elif networks.is_retired(item, self._cluster):
                async with self._locks.held([item["uuid"]]):
                    with contextlib.suppress(InUseError):
                        await self._writer.delete(item["uuid"])

    async def _delete_duplicates(self, listed: Sequence[Mapping[str, Any]]) -> None:
        """Deletes networks of ours that another program created at the same time, if nothing uses them.

        The server lets both succeed, and refuses from then on whatever names them.
        """
        counts = Counter(tuple(item["fq_name"]) for item in listed)
        for item in listed:
            if counts[tuple(item["fq_name"])] < 2 or not networks.is_own(item, self._cluster):
                continue
            name = ":".join(item["fq_name"])
            async with self._locks.held([item["uuid"], name]):
                try:
                    await self._writer.delete(item["uuid"])
                except InUseError as error:
                    log.error("network %s: exists twice: %s", name, error)  # noqa: TRY400 - the message is enough
                else:
                    log.warning("network %s: another program created it, too; deleted %s", name, item["uuid"])

    async def delete_ipams(self) -> None:
        """Deletes IPAMs of ours that no network uses, if the call before found them too. Raises StoreError."""
        with as_store_error("IPAMs"):
            listed = await self._client.list_all(networks.IPAM, fields=["annotations", "virtual_network_back_refs"])
        unused = {item["uuid"]: item for item in listed if networks.is_unused_ipam(item, self._cluster)}
        again, self._suspects = self._suspects & unused.keys(), unused.keys() - self._suspects
        for uuid in again:
            name = tuple(unused[uuid]["fq_name"])
            async with self._locks.held(networks.networks_of_ipam(name)):
                log.warning("IPAM %s: of no network, deleting it", ":".join(name))
                await self._writer.delete_ipam(uuid)
