"""The agent of one node: what the config store says of its machines, and which of their ports are plugged.

It knows nothing of addresses to listen on: `application` makes its pages, and whoever composes a process serves them.
"""

import asyncio
from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry

from agent_api.gateways.table import GatewayTable
from agent_api.metrics import Metrics
from agent_api.ports.directory import PortDirectory
from agent_api.ports.stale import STALE_AFTER, DeviceExists, StalePorts, device_exists
from agent_api.ports.table import PortTable
from agent_api.virtual_machine_index import VirtualMachineIndex
from agent_api.virtual_machine_watch import FIRST_PAUSE, VirtualMachineWatch, WatchedStore
from agent_api.waiters import MOST_WAITING, Waiters


class NodeAgent:
    """Serves the machines of `node`; keeps ports below `ports_dir`.

    `stale_after` and `first_pause` are seconds, `most_waiting` a number of requests; `device_exists` tells whether a
    host's device is there.
    """

    def __init__(
        self,
        *,
        store: WatchedStore,
        node: str,
        ports_dir: str,
        registry: CollectorRegistry,
        stale_after: float = STALE_AFTER,
        most_waiting: int = MOST_WAITING,
        device_exists: DeviceExists = device_exists,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self.machines = VirtualMachineIndex(Waiters(most=most_waiting))
        self.ports = PortTable(PortDirectory(ports_dir))
        self.stale = StalePorts(self.ports, after=stale_after, device_exists=device_exists)
        self.gateways = GatewayTable(ports_dir)
        self.metrics = Metrics(
            registry,
            machines=lambda: len(self.machines),
            ports=lambda: len(self.ports),
            waiting=lambda: len(self.machines.waiters),
        )
        self._watch = VirtualMachineWatch(store, node=node, machines=self.machines, first_pause=first_pause)

    async def load_ports(self) -> None:
        """Takes the ports, and the gateways, that an earlier process kept; `run` does it where nobody did before.

        Until then writes are answered 503 and `plugged` knows none, so call it before anybody asks that. Raises
        PortsError.
        """
        if not self.ports.loaded:
            await self.gateways.load()
            await self.ports.load()

    async def run(self) -> None:
        """Follows the store until it is cancelled. Raises PortsError if the ports cannot be reloaded."""
        await self.load_ports()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch.follow())
            tasks.create_task(self.stale.run())

    def readiness(self) -> list[str]:
        """Returns what keeps the agent from answering by the newest state; nothing: it is ready."""
        reasons = [] if self.ports.loaded else ["the ports are not reloaded yet"]
        if self._watch.problem is not None:
            reasons.append(self._watch.problem)
        return reasons

    def plugged(self, vm_uuid: str) -> bool:
        """Tells whether any port of the machine is plugged."""
        return bool(self.ports.of_machine(vm_uuid))

    def on_unplugged(self, callback: Callable[[Sequence[str]], None]) -> None:
        """Has the callback told the uuids of interfaces whose ports were freed, on the event loop."""
        self.ports.on_unplugged(lambda ports: callback([port.vmi_uuid for port in ports]))
