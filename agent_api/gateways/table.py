"""Table of this node's simple gateways, persisted as files `<root>/gateway/<interface>`.

The interface is the key: adding a gateway of the same interface replaces the previous one. A change enters the table,
and is acknowledged, only after its files are written.
"""

import asyncio
import logging
import os
from collections.abc import Iterator, Sequence

import msgspec

from agent_api.atomic_files import AtomicFileWriter, encode_file, quarantine, read_json, regular_files, storage_errors
from agent_api.field_types import validation_error
from agent_api.gateways.gateway import Gateway
from agent_api.serial_executor import SerialExecutor

log = logging.getLogger(__name__)

_decoder = msgspec.json.Decoder(Gateway)


class GatewayTable:
    """Persists gateways below `root`, the directory of the ports."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._gateways: dict[str, Gateway] = {}
        self._executor = SerialExecutor()
        self._files = AtomicFileWriter(os.path.join(root, "unfinished", "gateways"))

    async def load(self) -> None:
        """Loads the gateways that an earlier process persisted. Raises StorageError."""
        self._gateways = await asyncio.to_thread(self._load)
        self._executor.loaded = True

    def all(self) -> list[Gateway]:
        """Returns all gateways, by the name of their interface."""
        return [self._gateways[interface] for interface in sorted(self._gateways)]

    async def add(self, gateways: Sequence[Gateway]) -> None:
        """Adds or replaces gateways, all or none. Raises StorageError, NotReadyError."""

        async def add() -> None:
            await asyncio.to_thread(self._change, write=gateways)  # first the files, then the table
            self._gateways |= {gateway.interface: gateway for gateway in gateways}
            log.info("gateways added: %s", ", ".join(gateway.interface for gateway in gateways))

        await self._executor.run(add)

    async def delete(self, interfaces: Sequence[str]) -> None:
        """Deletes gateways, all or none; missing ones are not an error. Raises StorageError, NotReadyError."""

        async def delete() -> None:
            await asyncio.to_thread(self._change, remove=interfaces)
            for interface in interfaces:
                self._gateways.pop(interface, None)
            log.info("gateways deleted: %s", ", ".join(interfaces))

        await self._executor.run(delete)

    def _change(self, *, write: Sequence[Gateway] = (), remove: Sequence[str] = ()) -> None:
        with storage_errors():
            self._files.apply(
                write={self._path(gateway.interface): encode_file(gateway) for gateway in write},
                remove=[self._path(interface) for interface in remove],
            )

    def _path(self, interface: str) -> str:
        return os.path.join(self._root, "gateway", interface)

    def _load(self) -> dict[str, Gateway]:
        with storage_errors():
            os.makedirs(self._path(""), exist_ok=True)
            self._files.clear()
            return {gateway.interface: gateway for gateway in self._load_all()}

    def _load_all(self) -> Iterator[Gateway]:
        for file in regular_files(self._path("")):
            gateway = _read(file.path)
            if isinstance(gateway, str):
                destination = os.path.join(self._root, "corrupt", "gateway", f"{file.name}.corrupt")
                quarantine(file.path, destination, reason=gateway)
            else:
                yield gateway


def _read(path: str) -> Gateway | str:
    """Returns the gateway in a file, or a text with the reason if the file is invalid."""
    gateway = read_json(path, _decoder)
    if isinstance(gateway, str):
        return gateway
    if gateway.interface != os.path.basename(path):
        return f"belongs to {gateway.interface}"
    return validation_error(gateway) or gateway
