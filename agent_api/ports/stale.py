"""Drops ports whose device is gone: containers that ended while the agent, or the plugin, was down.

A port of before is believed at start, without asking for its device, since a node that just boots may make the
devices anew. After a while those that are still without one are dropped, but for what was plugged meanwhile.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

from agent_api.errors import PortsError
from agent_api.ports.table import PortTable

log = logging.getLogger(__name__)

STALE_AFTER = 60.0
"""Seconds from the start to the cleaning, as upstream's default."""

DeviceExists = Callable[[str], bool]


async def drop_stale_ports(table: PortTable, *, after: float, device_exists: DeviceExists) -> None:
    """Waits `after` seconds and drops those of the ports there now whose device is gone then."""
    suspects = table.all()
    await asyncio.sleep(after)
    gone = await asyncio.to_thread(lambda: [port for port in suspects if not device_exists(port.host_ifname)])
    if gone:
        log.warning("devices are gone: %s", ", ".join(sorted(port.host_ifname for port in gone)))
    with contextlib.suppress(
        PortsError
    ):  # told in the log by the table; they are harmless, and the next start tries again
        await table.drop(gone)


def device_exists(name: str) -> bool:
    """Tells whether a network device is in this process's network namespace."""
    try:
        socket.if_nametoindex(name)
    except OSError:
        return False
    return True
