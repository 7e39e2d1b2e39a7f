"""Drops ports that nobody has any more: whose container ended, or whose client forgot them, while nobody looked.

A port of before is believed at the start, without asking for its device, since a node that just boots may make the
devices anew. After a while those that are still without one are dropped.

`POST /syncports` says that a client will now post all its ports again. Those of instances that it has not posted a
while later are gone. No client posts containers' ports again (upstream drops them all the same, and with the first
also its machine's others); they are dropped then if their device is gone as well, and so are those of namespaces.

What was plugged meanwhile is never dropped.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

from agent_api.errors import PortsError
from agent_api.ports.instance import NAMESPACE, InstancePort
from agent_api.ports.port import Port, has_device
from agent_api.ports.table import PortTable

log = logging.getLogger(__name__)

STALE_AFTER = 60.0
"""Seconds from the start, or from a client's word, to the cleaning; as upstream's default."""

DeviceExists = Callable[[str], bool]


class StalePorts:
    """Cleans a table; `after` is in seconds."""

    def __init__(self, table: PortTable, *, after: float, device_exists: DeviceExists) -> None:
        self._table = table
        self._after = after
        self._device_exists = device_exists
        self._version = 0
        self._synced = asyncio.Event()

    def sync(self) -> None:
        """A client will post all its ports again from now on. Raises NotReadyError."""
        self._version = self._table.begin_version()
        self._synced.set()

    async def run(self) -> None:
        """Cleans once after the start and then after each `sync`, until it is cancelled."""
        await self.clean_after_start()
        while True:
            await self.clean_after_sync()

    async def clean_after_start(self) -> None:
        """Drops, when the time is over, the ports of now that have no device then."""
        await self._clean(self._table.begin_version(), self._lost_its_device)

    async def clean_after_sync(self) -> None:
        """Waits for a `sync`, and drops, when the time is over, what was forgotten by then.

        Those that come while one is waited for are waited for together afterwards: nobody has less time than `after`.
        """
        await self._synced.wait()
        self._synced.clear()
        await self._clean(self._version, self._was_forgotten)

    async def _clean(self, version: int, is_stale: Callable[[Port], bool]) -> None:
        await asyncio.sleep(self._after)
        older = self._table.older_than(version)
        stale = await asyncio.to_thread(lambda: [port for port in older if is_stale(port)])
        if stale:
            log.warning("stale ports, devices %s", ", ".join(sorted(port.host_ifname for port in stale)))
        with contextlib.suppress(PortsError):  # told in the log by the table; they are harmless until the next cleaning
            await self._table.drop(stale, older_than=version)

    def _lost_its_device(self, port: Port) -> bool:
        return has_device(port) and not self._device_exists(port.host_ifname)

    def _was_forgotten(self, port: Port) -> bool:
        is_told_again = isinstance(port, InstancePort) and port.kind != NAMESPACE
        return is_told_again or self._lost_its_device(port)


def device_exists(name: str) -> bool:
    """Tells whether a network device is in this process's network namespace."""
    try:
        socket.if_nametoindex(name)
    except OSError:
        return False
    return True
