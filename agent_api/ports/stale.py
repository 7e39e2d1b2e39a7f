"""Unplugs stale ports: their container or instance is gone, but no DELETE was received.

At start, loaded ports are accepted without a check of their device, because a booting node may still be creating the
devices. After the timeout, ports whose device is still missing are unplugged.

`POST /syncports` announces that a client will post all its ports again. After the timeout, instance ports that were not
posted again are unplugged. Container and namespace ports are never posted again by any client, so they are unplugged
only if their device is missing. (The Contrail vrouter agent unplugs them in any case, and with the first one also the
others of its VirtualMachine.)

With a Linux datapath most devices are in network namespaces of their own, so another rule says which are lost
(`agent_api.datapath.lost_devices`).

A port plugged during the timeout is never unplugged.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Collection, Iterable

from agent_api.errors import StorageError
from agent_api.ports.instance import NAMESPACE, InstancePort
from agent_api.ports.port import Port, has_device
from agent_api.ports.table import PortTable

log = logging.getLogger(__name__)

STALE_TIMEOUT = 60.0
"""Seconds from the start or from `/syncports` to the clean-up; the vrouter agent's default."""

DeviceExists = Callable[[str], bool]

HasLostDevice = Callable[[Port, Collection[str]], bool]
"""Returns whether a port has lost its device; the devices are those of ports in this process's network namespace."""


def is_not_here(port: Port, devices: Collection[str]) -> bool:
    """The rule without a datapath: every device is in this process's network namespace."""
    return port.host_ifname not in devices


class StalePortCleaner:
    """Unplugs the stale ports of a table; `timeout` is in seconds."""

    def __init__(
        self,
        table: PortTable,
        *,
        timeout: float,
        device_exists: DeviceExists,
        has_lost_device: HasLostDevice = is_not_here,
    ) -> None:
        self._table = table
        self._timeout = timeout
        self._device_exists = device_exists
        self._has_lost_device = has_lost_device
        self._generation = 0
        self._synced = asyncio.Event()

    def sync(self) -> None:
        """Starts the timeout within which a client posts all its ports again. Raises NotReadyError."""
        self._generation = self._table.begin_generation()
        self._synced.set()

    async def run(self) -> None:
        """Cleans up once after the start and then after each `sync`, until cancelled."""
        await self.clean_after_start()
        while True:
            await self.clean_after_sync()

    async def clean_after_start(self) -> None:
        """Waits for the timeout, then unplugs older ports without a device."""
        await self._clean(self._table.begin_generation(), self._is_without_device)

    async def clean_after_sync(self) -> None:
        """Waits for a `sync` and the timeout, then unplugs ports that were not posted again.

        Further syncs during the timeout are handled together in the next round, so each gets the full timeout.
        """
        await self._synced.wait()
        self._synced.clear()  # before the timeout: a sync during it starts another round
        await self._clean(self._generation, self._was_not_posted_again)

    async def _clean(self, generation: int, is_stale: HasLostDevice) -> None:
        await asyncio.sleep(self._timeout)
        # In a thread: a host has hundreds of ports, and each check of a device is a system call.
        devices = await asyncio.to_thread(self._existing, [port.host_ifname for port in self._table.all()])
        stale = [port for port in self._table.older_than(generation) if is_stale(port, devices)]
        if stale:
            log.warning("unplugging stale ports of devices %s", ", ".join(sorted(port.host_ifname for port in stale)))
        with contextlib.suppress(StorageError):  # logged by the table; harmless until the next clean-up
            # The table checks the generation once more: a port may have been plugged during the check of devices.
            await self._table.unplug_older(stale, older_than=generation)

    def _existing(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(name for name in names if self._device_exists(name))

    def _is_without_device(self, port: Port, devices: Collection[str]) -> bool:
        return has_device(port) and self._has_lost_device(port, devices)

    def _was_not_posted_again(self, port: Port, devices: Collection[str]) -> bool:
        is_reposted = isinstance(port, InstancePort) and port.kind != NAMESPACE
        return is_reposted or self._is_without_device(port, devices)


def device_exists(name: str) -> bool:
    """Returns whether a network device exists in this process's network namespace."""
    try:
        socket.if_nametoindex(name)
    except OSError:
        return False
    return True
