"""Linux datapath of the node: its desired state, from virtual machines and ports, and the reports on it."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from prometheus_client import CollectorRegistry

from agent_api.datapath.desired_state import (
    INDEX_0,
    Computation,
    DatapathOptions,
    desired_state,
    spans_nodes,
)
from agent_api.datapath.fabric import Fabric
from agent_api.datapath.feed import DesiredStateFeed
from agent_api.datapath.follower_lease import FollowerLease
from agent_api.datapath.kind import Datapath
from agent_api.datapath.known_virtual_machines import KnownVirtualMachines
from agent_api.datapath.lost_devices import has_lost_device
from agent_api.datapath.metrics import DatapathMetrics
from agent_api.datapath.refusals import reported_refusals
from agent_api.datapath.refused_interfaces import RefusedInterfaces
from agent_api.datapath.report import DatapathReport, PortCounters
from agent_api.datapath.reports import MAX_AGE, DatapathReports
from agent_api.datapath.slice_index import SliceIndex
from agent_api.datapath.slice_watches import SliceWatches
from agent_api.datapath.unconnected_ports import UnconnectedPorts
from agent_api.ports.container import ContainerPort
from agent_api.ports.port import Port
from agent_api.ports.table import PortTable
from contrail_config.objects import NetworkRepairs, Refusal, VirtualMachine, VirtualMachineInterface
from contrail_config.store import SliceStore

log = logging.getLogger(__name__)

_MAX_NAMED = 3
"""Reasons of one kind in the readiness; the rest is counted."""


class Spanning(NamedTuple):
    """What it takes to connect networks with other nodes: their slices, this node's name, the tunnels' UDP port.

    `pod_network` is the uuid of the network whose pods this node itself reaches, whether or not it has one; None: none.
    """

    store: SliceStore
    node: str
    port: int
    pod_network: str | None = None


class NetworkStatus(msgspec.Struct, frozen=True, rename="kebab"):
    """A network of the state that was served last: its name, None for the routed ports, and its number of ports."""

    name: str | None
    ports: int


class DatapathStatus(msgspec.Struct, frozen=True, rename="kebab"):
    """The datapath as this agent knows it: `version` and networks of the state that was served last, and the report.

    `networks` are by VNI, the routed ports by 0. `refused`: networks that are not connected, and subnets without a
    route. `follower` programs the kernel now, None if nothing does. `age`: seconds since the report. `counters`: the
    latest that were reported, of ports by VNI and link; they may be of an earlier report. `outdated`: why changes in
    the cluster are not known.
    """

    version: str | None
    networks: dict[str, NetworkStatus]
    refused: tuple[Refusal, ...]
    follower: str | None
    age: float | None
    report: DatapathReport | None
    counters: PortCounters
    outdated: tuple[str, ...] = ()
    datapath: Datapath = Datapath.LINUX


class LinuxDatapath:
    """What the kernel of this node should have, for the process that programs it, and what that process reports."""

    def __init__(
        self,
        virtual_machines: KnownVirtualMachines,
        ports: PortTable,
        *,
        options: DatapathOptions,
        registry: CollectorRegistry,
        spanning: Spanning | None = None,
    ) -> None:
        self._options = options
        self._slices = SliceIndex()
        self._fabric: Fabric | None = None
        self._watches: SliceWatches | None = None
        if spanning is not None:
            self._fabric = Fabric(
                self._slices, node=spanning.node, port=spanning.port, pod_network=spanning.pod_network
            )
            self._watches = SliceWatches(
                spanning.store,
                self._slices,
                networks=self._spanning_networks,
                on_change=self._slices_changed,
                on_forget=self._slices_forgotten,
            )
        self._programmed: frozenset[int] = frozenset()
        self._refused_interfaces = RefusedInterfaces(
            virtual_machines, self._fabric, options.fabric_subnets, link_of=self._link_of, compute=self._compute
        )
        self._virtual_machines = virtual_machines
        self._ports = ports
        self._logged: frozenset[str] = frozenset()
        self._on_refused: list[Callable[[Sequence[Refusal]], None]] = []
        self.feed = DesiredStateFeed(self._compute, not_ready_reason=self._not_ready_reason)
        self.lease = FollowerLease(self.feed.waiters)
        self.reports = DatapathReports()
        self._unconnected = UnconnectedPorts(virtual_machines, self.feed, self.reports, port_of=self._port_of)
        DatapathMetrics(registry, self.feed, self.reports, self.refusals, self._unconnected.counts)
        virtual_machines.on_change(self._virtual_machines_changed)
        ports.on_change(self.feed.changed)

    async def run(self) -> None:
        """Follows the slices of this node's networks until it is cancelled."""
        if self._watches is not None:
            await self._watches.run()

    def report(self, report: DatapathReport) -> None:
        """Makes the report the latest one."""
        self.reports.add(report)
        if self._fabric is not None and self._fabric.take_mtu(report.tunnel_mtu):
            self.feed.changed()
        complete = self.feed.complete_in(report.version)
        self._programmed = (self._programmed if complete is None else complete).difference(report.unconnected)
        self._virtual_machines.recheck()
        for callback in self._on_refused:
            callback(self.refusals())

    def incomplete_reason(self, virtual_machine: VirtualMachine) -> str | None:
        """Returns why a pod must wait for its networks, so that it reaches other nodes from its first packet on.

        There is no exception while nothing programs the kernel: ADD ends with this reason after the plugin's own time.
        Where something else connects pods, the datapath is `none`, and nothing waits.
        """
        if self._fabric is None or self._ports.by_virtual_machine(virtual_machine.uuid):
            return None  # one that is plugged has waited already
        refused = self.refused_interfaces(virtual_machine)  # for these there is nothing to wait for: ADD fails
        for index, interface in enumerate(virtual_machine.interfaces):
            if index in refused or not spans_nodes(virtual_machine, index):
                continue
            if not self._reaches_nodes(interface, index):
                name = ":".join(interface.network)
                return f"network {name}: not connected to other nodes yet{self._because(interface, index)}"
        return None

    def readiness(self) -> list[str]:
        """Returns what prevents traffic, by network; the first few are named."""
        slices = [] if self._watches is None else self._watches.problems
        return list(_first_few([*self.reports.problems(), *slices]))

    def unconnected_ports(self) -> list[str]:
        """Returns why single ports have no traffic, by pod; the first few are named."""
        return self._unconnected.reasons()

    def on_refused(self, callback: Callable[[Sequence[Refusal]], None]) -> None:
        """Calls back with all refusals after each report from now on; `callback` must neither wait nor raise."""
        self._on_refused.append(callback)

    @property
    def tunnel_mtu(self) -> int | None:
        """The longest packet of a pod that fits into a tunnel of this node; None if nothing reports it."""
        return None if self.reports.latest is None else self.reports.latest.tunnel_mtu

    @property
    def daemon_version(self) -> str | None:
        """Version of the node daemon; None if it has not reported."""
        return None if self.reports.latest is None else self.reports.latest.daemon_version

    @property
    def missing_modules(self) -> tuple[str, ...]:
        """Modules that the kernel of this node lacks."""
        return () if self.reports.latest is None else self.reports.latest.missing_modules

    def refusals(self) -> list[Refusal]:
        """Returns the networks that are not connected, and the subnets without a route, by network and subnet."""
        reported = () if self.reports.latest is None else self.reports.latest.refused
        found = [*self.feed.refused, *reported_refusals(reported, self.feed.names)]
        return sorted(found, key=lambda each: (each.network, each.subnet or "", each.reason))

    @property
    def counted_at(self) -> str | None:
        """When the counters of ports were reported (RFC 3339); None if they were not."""
        return None if self.reports.counted_at is None else _text_of(self.reports.counted_at)

    def network_repairs(self) -> list[NetworkRepairs]:
        """Returns the networks that were repaired, the latest first; index 0 is of no single network."""
        names = self.feed.names
        return [
            NetworkRepairs(names[int(vni)], int(vni), each.repairs, _text_of(each.latest))
            for vni, each in reversed(self.reports.repaired_networks.items())
            if int(vni) in names
        ]

    def refused_interfaces(self, virtual_machine: VirtualMachine) -> dict[int, str]:
        """Returns why interfaces of a virtual machine must not be connected now, by index."""
        return self._refused_interfaces.of(virtual_machine)

    def status(self) -> DatapathStatus:
        """Returns the datapath as this agent knows it."""
        reports = self.reports
        return DatapathStatus(
            version=self.feed.version,
            networks=self._networks(),
            refused=tuple(self.refusals()),
            follower=self.lease.holder,
            age=None if reports.latest is None else round(reports.age, 3),
            report=reports.latest,
            counters=reports.counters,
            outdated=() if self._watches is None else tuple(self._watches.all_problems()),
        )

    def _networks(self) -> dict[str, NetworkStatus]:
        state, names = self.feed.state, self.feed.names
        routed = {"0": NetworkStatus(None, len(state.routed))} if state.routed else {}
        return routed | {
            str(network.vni): NetworkStatus(":".join(names[network.vni]), len(network.ports))
            for network in state.networks
        }

    def has_lost_device(self, port: Port, devices: Collection[str]) -> bool:
        """Returns whether a port's device is gone; `devices` of ports are in the node's own namespace."""
        # Before the first complete list nothing is known of the namespaces.
        return self._virtual_machines.synced and has_lost_device(
            port,
            devices=devices,
            siblings=self._ports.by_virtual_machine(port.vm_uuid).values(),
            virtual_machine=self._virtual_machines.by_uuid(port.vm_uuid),
            is_missing=self.reports.is_missing,
        )

    def _reaches_nodes(self, interface: VirtualMachineInterface, index: int) -> bool:
        if self._fabric is None or not self._fabric.is_complete(interface.network_uuid):
            return False
        if self._lacks_own_slice(interface):
            return False  # nothing leaves this node yet: the manager writes its slice after the virtual machine
        if self._fabric.tunnel is None:
            return True  # nothing leaves this node
        return self.reports.age <= MAX_AGE and self._is_programmed(_number(interface, index))

    def _is_programmed(self, number: int) -> bool:
        report = self.reports.latest
        if report is None or number in report.unconnected:
            return False
        # If a network comes back as it was, its version is that of the report, and it is complete there again.
        return number in self._programmed or number in (self.feed.complete_in(report.version) or ())

    def _lacks_own_slice(self, interface: VirtualMachineInterface) -> bool:
        fabric = self._fabric
        return fabric is not None and fabric.tunnel is None and fabric.lacks_own_slice(interface.network_uuid)

    def _because(self, interface: VirtualMachineInterface, index: int) -> str:
        number, report = _number(interface, index), self.reports.latest
        if report is not None and number in report.unconnected:
            return f": {report.problems.get(str(number)) or report.problems.get(str(INDEX_0), 'not programmed')}"
        problems = [] if self._watches is None else list(self._watches.problems)
        if self._lacks_own_slice(interface):
            problems.append("no slice of this node yet")
        if report is None:
            problems.append("contrail-cnid has not reported yet")
        elif self.reports.age > MAX_AGE:
            problems.append(f"contrail-cnid has not reported for {MAX_AGE:g} s")
        return f": {problems[0]}" if problems else ""

    def _spanning_networks(self) -> frozenset[str]:
        followed = frozenset[str]() if self._fabric is None else self._fabric.followed
        return followed | {
            interface.network_uuid
            for virtual_machine in self._virtual_machines.all()
            for index, interface in enumerate(virtual_machine.interfaces)
            if spans_nodes(virtual_machine, index)
        }

    def _virtual_machines_changed(self) -> None:
        self.feed.changed()
        if self._watches is not None:
            self._watches.changed()

    def _slices_changed(self) -> None:
        self.feed.changed()
        self._virtual_machines.recheck()

    def _slices_forgotten(self, network_uuid: str) -> None:
        # A report may be on its way whose version still has the network, with slices that have changed since.
        self._programmed = self._programmed.difference(self.feed.forget(network_uuid))

    def _not_ready_reason(self) -> str | None:
        # On half a list the reader would remove what is in use.
        if not self._ports.loaded:
            return "ports: not loaded yet"
        if not self._virtual_machines.synced:
            return "virtual machines: not listed yet"
        return None

    def _compute(self) -> Computation:
        computation = desired_state(self._virtual_machines.all(), self._link_of, self._options, self._fabric)
        messages = frozenset(refusal.message for refusal in computation.refused)
        for message in sorted(messages - self._logged):
            log.warning("datapath: %s", message)
        self._logged = messages
        return computation

    def _link_of(self, virtual_machine: VirtualMachine, interface: VirtualMachineInterface) -> str | None:
        port = self._port_of(virtual_machine, interface)
        return None if port is None else port.host_ifname

    def _port_of(self, virtual_machine: VirtualMachine, interface: VirtualMachineInterface) -> ContainerPort | None:
        port = self._ports.by_interface(interface.uuid)
        return port if isinstance(port, ContainerPort) and port.vm_uuid == virtual_machine.uuid else None


def _number(interface: VirtualMachineInterface, index: int) -> int:
    return interface.vni if index else INDEX_0


def _text_of(seconds: float) -> str:
    """Returns a time since the epoch as RFC 3339 has it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _first_few(reasons: list[str]) -> Iterator[str]:
    yield from reasons[:_MAX_NAMED]
    if len(reasons) > _MAX_NAMED:
        yield f"datapath: {len(reasons) - _MAX_NAMED} more problems"
