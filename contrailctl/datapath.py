"""The datapath of a node as its agent knows it: its networks, and the state of a port."""

from enum import StrEnum

import msgspec

from cni_contrail.datapath.namespaces import name_of
from contrail_config.objects import Refusal, VirtualMachineInterface

INDEX_0 = 0
"""Key of the routed ports in the agent's maps, whose other keys are VNIs."""

MAX_AGE = 60.0
"""Seconds without a report after which the agent counts the datapath as not programmed."""


class Drops(msgspec.Struct, frozen=True):
    """Packets that a network has dropped since it was made, by reason; `ports`: as spoofing, by link.

    `tunnel` is known of index 0 alone, and `mtu` of networks alone.
    """

    spoofing: int = 0
    broadcast: int = 0
    tunnel: int = 0
    mtu: int = 0
    ports: dict[str, int] = {}


class HostEndCounters(msgspec.Struct, frozen=True, array_like=True):
    """What the host end of a port has received from the pod, and sent to it."""

    received_packets: int
    received_bytes: int
    sent_packets: int
    sent_bytes: int


class PortCounters(msgspec.Struct, frozen=True):
    """Packets and bytes that a pod has sent and received by an interface; what was sent includes what was dropped."""

    sent_packets: int
    sent_bytes: int
    received_packets: int
    received_bytes: int


class _Network(msgspec.Struct):
    name: str | None
    ports: int


class _Report(msgspec.Struct):
    problems: dict[int, str] = {}
    missing: dict[int, tuple[str, ...]] = {}
    drops: dict[int, Drops] = {}


class NodeNetwork(msgspec.Struct, frozen=True):
    """A network on the node; index 0, which is routed, has `vni` 0. `drops` are None where they are not known."""

    vni: int
    network: str | None
    ports: int
    missing: tuple[str, ...] = ()
    problem: str | None = None
    drops: Drops | None = None


class PortCondition(StrEnum):
    """Whether a port is connected."""

    CONNECTED = "Connected"
    MISSING = "Missing"
    PROBLEM = "Problem"
    UNKNOWN = "Unknown"
    NOT_PLUGGED = "NotPlugged"


class PortState(msgspec.Struct, frozen=True):
    """State of an interface's port. `namespace` is that of its host end, None for the node's own or none.

    `drops` are those of the whole network, `spoofing` those of this port. These and the `counters` are None where they
    are not known; `counted_at` is when a manager's were reported.
    """

    condition: PortCondition
    reason: str = ""
    namespace: str | None = None
    drops: Drops | None = None
    spoofing: int | None = None
    counters: PortCounters | None = None
    counted_at: str | None = None


class DatapathStatus(msgspec.Struct):
    """Answer of the agent to `/datapath/report`, reduced to the keys that are used.

    `refused` are networks that the node does not connect, and subnets to which it has no route. `outdated`: why changes
    in the cluster are not known.
    """

    networks: dict[int, _Network]
    refused: tuple[Refusal, ...] = ()
    follower: str | None = None
    age: float | None = None
    report: _Report | None = None
    counters: dict[int, dict[str, HostEndCounters]] = {}
    outdated: tuple[str, ...] = ()

    @property
    def silence(self) -> str | None:
        """Why the state of the kernel is not known, None if a current report says it."""
        if self.age is None:
            return "nothing reported yet: contrail-cnid does not program the datapath"
        if self.age > MAX_AGE:
            return f"nothing reported for {self.age:.0f} s: contrail-cnid does not program the datapath"
        return None

    def node_networks(self) -> list[NodeNetwork]:
        """Returns the networks by VNI, with those that stand only in the report."""
        report = self.report or _Report()
        numbers = {*self.networks, *report.problems, *report.missing}
        return [self._node_network(vni, report) for vni in sorted(numbers)]

    def port_state(self, index: int, interface: VirtualMachineInterface, link: str | None) -> PortState:
        """Returns the state of an interface whose host end is `link`, None if it is not plugged."""
        vni = INDEX_0 if index == 0 else interface.vni
        refusal = next((each for each in self.refused if _concerns(each, index, interface)), None)
        if refusal is not None:
            return PortState(PortCondition.PROBLEM, refusal.message)
        if index and not vni:
            return PortState(PortCondition.PROBLEM, "its network has no VNI")
        condition, reason = (PortCondition.NOT_PLUGGED, "") if link is None else self._condition(vni, link)
        drops = self.report.drops.get(vni) if self.report else None
        spoofing = drops.ports.get(link, 0) if drops and link else None
        counters = _of_pod(self.counters.get(vni, {}).get(link or ""))
        return PortState(condition, reason, name_of(vni) if vni else None, drops, spoofing, counters)

    def _condition(self, vni: int, link: str) -> tuple[PortCondition, str]:
        report = self.report or _Report()
        if self.silence:
            return PortCondition.UNKNOWN, self.silence
        if link in report.missing.get(vni, ()):
            return PortCondition.MISSING, "the host end does not exist"
        if vni in report.problems:
            return PortCondition.PROBLEM, report.problems[vni]
        return PortCondition.CONNECTED, ""

    def _node_network(self, vni: int, report: _Report) -> NodeNetwork:
        network = self.networks.get(vni, _Network(None, 0))
        return NodeNetwork(
            vni=vni,
            network=network.name,
            ports=network.ports,
            missing=report.missing.get(vni, ()),
            problem=report.problems.get(vni),
            drops=report.drops.get(vni),
        )


def _of_pod(counted: HostEndCounters | None) -> PortCounters | None:
    """Returns the counters from the pod's side."""
    if counted is None:
        return None
    return PortCounters(counted.received_packets, counted.received_bytes, counted.sent_packets, counted.sent_bytes)


def _concerns(refusal: Refusal, index: int, interface: VirtualMachineInterface) -> bool:
    """Whether a refusal keeps an interface from being connected: one about a subnet does so at index 0 only."""
    is_refused = refusal.network == interface.network and not refusal.connected
    return is_refused and (index == 0 or refusal.subnet is None)
