"""All simple gateways of this node, each a file `<root>/gateway/<interface>`.

A gateway is known by its interface: one that is added again takes the place of the one before. A change is in the
table, and acknowledged, only after its files are in place.
"""

import asyncio
import logging
import os
from collections.abc import Iterator, Sequence

import msgspec

from agent_api.changes import Changes
from agent_api.files import FileChanges, as_file, as_ports_error, read_as, regular_files, set_aside
from agent_api.gateways.gateway import Gateway
from agent_api.values import wrong_value

log = logging.getLogger(__name__)

_decoder = msgspec.json.Decoder(Gateway)


class GatewayTable:
    """Keeps gateways below `root`, the directory of the ports."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._gateways: dict[str, Gateway] = {}
        self._changes = Changes()
        self._files = FileChanges(os.path.join(root, "unfinished", "gateways"))

    async def load(self) -> None:
        """Takes the gateways that an earlier process kept. Raises PortsError."""
        self._gateways = await asyncio.to_thread(self._load)
        self._changes.loaded = True

    def all(self) -> list[Gateway]:
        """Returns all gateways, by the name of their interface."""
        return [self._gateways[interface] for interface in sorted(self._gateways)]

    async def add(self, gateways: Sequence[Gateway]) -> None:
        """Takes gateways, all or none. Raises PortsError, NotReadyError."""

        async def add() -> None:
            await asyncio.to_thread(self._change, write=gateways)
            self._gateways |= {gateway.interface: gateway for gateway in gateways}
            log.info("gateways added: %s", ", ".join(gateway.interface for gateway in gateways))

        await self._changes.make(add)

    async def delete(self, interfaces: Sequence[str]) -> None:
        """Deletes gateways, all or none; those that are not there are no error. Raises PortsError, NotReadyError."""

        async def delete() -> None:
            await asyncio.to_thread(self._change, remove=interfaces)
            for interface in interfaces:
                self._gateways.pop(interface, None)
            log.info("gateways deleted: %s", ", ".join(interfaces))

        await self._changes.make(delete)

    def _change(self, *, write: Sequence[Gateway] = (), remove: Sequence[str] = ()) -> None:
        with as_ports_error():
            self._files.make(
                write={self._path(gateway.interface): as_file(gateway) for gateway in write},
                remove=[self._path(interface) for interface in remove],
            )

    def _path(self, interface: str) -> str:
        return os.path.join(self._root, "gateway", interface)

    def _load(self) -> dict[str, Gateway]:
        with as_ports_error():
            os.makedirs(self._path(""), exist_ok=True)
            self._files.clear()
            return {gateway.interface: gateway for gateway in self._load_all()}

    def _load_all(self) -> Iterator[Gateway]:
        for file in regular_files(self._path("")):
            gateway = _read(file.path)
            if isinstance(gateway, str):
                aside = os.path.join(self._root, "corrupt", "gateway", f"{file.name}.corrupt")
                set_aside(file.path, aside, reason=gateway)
            else:
                yield gateway


def _read(path: str) -> Gateway | str:
    """Returns the gateway that a file holds, or why it holds none."""
    gateway = read_as(path, _decoder)
    if isinstance(gateway, str):
        return gateway
    if gateway.interface != os.path.basename(path):
        return f"belongs to {gateway.interface}"
    return wrong_value(gateway) or gateway
