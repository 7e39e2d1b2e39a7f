"""The agent of one node: an index of its VirtualMachines from the config store, and the table of plugged ports.

It knows no listeners: `application` builds the HTTP application, and the process serves it.
"""

import asyncio
from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry

from agent_api.datapath.desired_state import DEFAULT_OPTIONS, DatapathOptions
from agent_api.datapath.kind import DEFAULT_DATAPATH, Datapath
from agent_api.datapath.linux_datapath import LinuxDatapath, Spanning
from agent_api.datapath.metrics import register_kind
from agent_api.datapath.port_readings import port_readings
from agent_api.datapath.port_state import PortState, port_states
from agent_api.gateways.table import GatewayTable
from agent_api.metrics import Metrics
from agent_api.ports.container import ContainerPort
from agent_api.ports.directory import PortDirectory
from agent_api.ports.stale import STALE_TIMEOUT, DeviceExists, StalePortCleaner, device_exists, is_not_here
from agent_api.ports.table import PortTable
from agent_api.virtual_machine_index import VirtualMachineIndex
from agent_api.virtual_machine_watch import INITIAL_BACKOFF, VirtualMachineWatch, WatchedStore
from contrail_config.objects import NetworkRepairs, Refusal, VirtualMachine
from contrail_config.port_readings import PortReading


class NodeAgent:
    """Serves the VirtualMachines of `node` and persists ports below `ports_dir`.

    `stale_timeout` and `initial_backoff` are in seconds; `device_exists` checks for a network device of the host.
    `details` are what `/readyz` says beyond readiness. With `spanning` networks are connected with other nodes.
    """

    def __init__(
        self,
        *,
        store: WatchedStore,
        node: str,
        ports_dir: str,
        registry: CollectorRegistry,
        stale_timeout: float = STALE_TIMEOUT,
        device_exists: DeviceExists = device_exists,
        initial_backoff: float = INITIAL_BACKOFF,
        datapath: Datapath = DEFAULT_DATAPATH,
        options: DatapathOptions = DEFAULT_OPTIONS,
        spanning: Spanning | None = None,
    ) -> None:
        self.details = {"datapath": datapath.value}
        self.virtual_machines = VirtualMachineIndex()
        self.ports = PortTable(PortDirectory(ports_dir))
        self.gateways = GatewayTable(ports_dir)
        register_kind(registry, datapath)
        self.datapath: LinuxDatapath | None = None
        if datapath is Datapath.LINUX:
            self.datapath = LinuxDatapath(
                self.virtual_machines, self.ports, options=options, registry=registry, spanning=spanning
            )
            self.virtual_machines.datapath = self.datapath
            self.virtual_machines.hold_back(self.datapath.incomplete_reason)
        self.stale_ports = StalePortCleaner(
            self.ports,
            timeout=stale_timeout,
            device_exists=device_exists,
            has_lost_device=self.datapath.has_lost_device if self.datapath else is_not_here,
        )
        self.metrics = Metrics(
            registry,
            virtual_machines=lambda: len(self.virtual_machines),
            ports=lambda: len(self.ports),
            waiting=lambda: len(self.virtual_machines.waiters),
        )
        self._watch = VirtualMachineWatch(
            store, node=node, index=self.virtual_machines, initial_backoff=initial_backoff
        )

    async def load_ports(self) -> None:
        """Loads the ports and gateways that an earlier process persisted. Idempotent; `run` calls it if needed.

        Until then writes are answered with 503 and `is_plugged` returns False for every VirtualMachine, so call this
        before `is_plugged` is used. Raises StorageError.
        """
        if not self.ports.loaded:  # gateways are loaded before ports
            await self.gateways.load()
            await self.ports.load()

    async def run(self) -> None:
        """Watches the store until cancelled. Raises StorageError if the ports cannot be loaded."""
        await self.load_ports()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch.run())
            tasks.create_task(self.stale_ports.run())
            if self.datapath is not None:
                tasks.create_task(self.datapath.run())

    def readiness(self) -> list[str]:
        """Returns the reasons why the agent cannot answer with current state; empty when it is ready."""
        # The plugin's STATUS recognizes this reason by the word "ports"; no other reason of this agent may contain it.
        reasons = [] if self.ports.loaded else ["ports: not loaded yet"]
        if self._watch.problem is not None:
            reasons.append(self._watch.problem)
        if self.datapath is not None:
            reasons += self.datapath.readiness()
        return reasons

    def unconnected_ports(self) -> list[str]:
        """Returns why single ports have no traffic. What concerns one pod does not make the node unready."""
        return [] if self.datapath is None else self.datapath.unconnected_ports()

    def port_states(self, virtual_machine: VirtualMachine) -> list[PortState]:
        """Returns the states of the ports of a VirtualMachine's interfaces, in their order."""
        plugged = self.ports.by_virtual_machine(virtual_machine.uuid)
        ports = {uuid: port for uuid, port in plugged.items() if isinstance(port, ContainerPort)}
        return port_states(virtual_machine.interfaces, ports, self.datapath)

    def port_readings(self, virtual_machine: VirtualMachine) -> list[PortReading]:
        """Returns the same as managers show it."""
        states = self.port_states(virtual_machine)
        return port_readings(virtual_machine.interfaces, states, has_namespaces=self.datapath is not None)

    def counted_at(self) -> str | None:
        """Returns when the counters of ports were reported (RFC 3339); None if they were not."""
        return None if self.datapath is None else self.datapath.counted_at

    def is_plugged(self, vm_uuid: str) -> bool:
        """Returns whether any port of the VirtualMachine is plugged."""
        return bool(self.ports.by_virtual_machine(vm_uuid))

    def on_unplugged(self, callback: Callable[[Sequence[str]], None]) -> None:
        """Registers a callback for the interface uuids of unplugged ports; it runs on the event loop."""
        self.ports.on_unplugged(lambda ports: callback([port.vmi_uuid for port in ports]))

    def on_refused(self, callback: Callable[[Sequence[Refusal]], None]) -> None:
        """Registers a callback for all that the datapath does not connect or route, after each of its reports."""
        if self.datapath is not None:
            self.datapath.on_refused(callback)

    def refusals(self) -> list[Refusal]:
        """Returns what the datapath does not connect or route."""
        return [] if self.datapath is None else self.datapath.refusals()

    def tunnel_mtu(self) -> int | None:
        """Returns the longest packet of a pod that fits into a tunnel of this node; None if that is not known."""
        return None if self.datapath is None else self.datapath.tunnel_mtu

    def daemon_version(self) -> str | None:
        """Returns the version of the node daemon; None if it does not program the datapath, or has not reported."""
        return None if self.datapath is None else self.datapath.daemon_version

    def repairs(self) -> dict[str, int]:
        """Returns the numbers of repairs since the start, by kind of what other programs had changed."""
        return {} if self.datapath is None else dict(self.datapath.reports.repairs)

    def network_repairs(self) -> list[NetworkRepairs]:
        """Returns the networks of which the datapath repaired what other programs had changed, the latest first."""
        return [] if self.datapath is None else self.datapath.network_repairs()

    def missing_modules(self) -> tuple[str, ...]:
        """Returns the modules that the node's kernel lacks for its datapath."""
        return () if self.datapath is None else self.datapath.missing_modules
