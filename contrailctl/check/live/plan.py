"""Plans the probes of temporary pods: who asks whom in which family, and whether an answer is expected. Pure.

What cannot be judged is left out: packets that leave the networks, by `ip_fabric_snat` or from index 0, and enter one
again on another node, whose routes nobody here knows.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from contrail_config.objects import PodNetwork, VirtualMachineInterface
from contrailctl.check.live.target import Target
from contrailctl.check.live.wire import PORT, Kind, Probe
from contrailctl.check.node_agent import INDEX_0_NAME


class LivePod(NamedTuple):
    """A temporary pod on a node: in the network of a NAD (`namespace/name`), or at index 0 alone if it is empty."""

    name: str
    node: str
    nad: str = ""

    @property
    def position(self) -> int:
        """Index of the interface that it checks."""
        return 1 if self.nad else 0


class Attached(NamedTuple):
    """A temporary pod whose interface is known."""

    pod: LivePod
    interface: VirtualMachineInterface

    @property
    def network(self) -> str:
        """Name of the network in findings."""
        return ":".join(self.interface.network) if self.pod.nad else INDEX_0_NAME

    def source(self, family: int) -> str | None:
        """Its address in a family."""
        return next((each.address for each in self.interface.addresses if each.family == family), None)

    @property
    def has_way_out(self) -> bool:
        """Whether its packets can leave its network."""
        return not self.pod.nad or self.interface.ip_fabric_snat or self.interface.ip_fabric_forwarding

    @property
    def has_way_in(self) -> bool:
        """Whether packets from outside of its network can reach it."""
        return not self.pod.nad or self.interface.ip_fabric_forwarding


class Aim(StrEnum):
    """What a probe asks, as findings name it."""

    POD = "pod"
    GATEWAY = "gateway"
    CLUSTER_IP = "ClusterIP"
    OUTSIDE = "outside address"


class Planned(NamedTuple):
    """A probe of a pod, and what it is about; `peer` is the pod that it asks."""

    probe: Probe
    aim: Aim
    peer: Attached | None = None


def plan_probes(
    attached: Sequence[Attached], *, cluster_ips: Sequence[Target] = (), outside: Sequence[Target] = ()
) -> Mapping[LivePod, list[Planned]]:
    """Returns the probes of each pod."""
    return {
        source.pod: [
            *(planned for target in attached for planned in _to_pod(source, target)),
            *_to_gateways(source),
            *_to_cluster_ips(source, cluster_ips),
            *_to_outside(source, outside),
        ]
        for source in attached
    }


def answers(source: Attached, target: Attached) -> bool | None:
    """Returns whether a pod must reach another one (True), must not (False), or may (None)."""
    if source.interface.network_uuid == target.interface.network_uuid:
        if source.pod.position != target.pod.position:
            return None
        is_across = bool(source.pod.nad) or source.interface.pod_network is PodNetwork.CLUSTER
        return True if is_across or source.pod.node == target.pod.node else None
    is_judged = source.pod.node == target.pod.node or not (source.has_way_out and target.has_way_in)
    return False if is_judged else None


def _to_pod(source: Attached, target: Attached) -> Iterator[Planned]:
    expected = answers(source, target)
    if target.pod == source.pod or expected is None:
        return
    own = {each.address for each in source.interface.addresses}
    for address in target.interface.addresses:
        local = source.source(address.family)
        # With equal subnets the address may be the pod's own: it would ask itself.
        if local is not None and address.address not in own:
            probe = Probe(Kind.RESPONDER, address.address, local, expected, identity=target.pod.name, port=PORT)
            yield Planned(probe, Aim.POD, target)


def _to_gateways(source: Attached) -> Iterator[Planned]:
    for address in source.interface.addresses:
        if address.subnet_gateway is not None:
            yield Planned(_echo(address.subnet_gateway, address.address, expected=True), Aim.GATEWAY)


def _to_cluster_ips(source: Attached, targets: Sequence[Target]) -> Iterator[Planned]:
    for target in targets:
        local = source.source(target.family)
        if not source.pod.nad and local is not None:
            probe = Probe(Kind.CONNECT, target.address, local, expected=True, port=target.port)
            yield Planned(probe, Aim.CLUSTER_IP)


def _to_outside(source: Attached, targets: Sequence[Target]) -> Iterator[Planned]:
    for target in targets:
        expected = _reaches_outside(source, target)
        local = source.source(target.family)
        if expected is None or local is None:
            continue
        if target.port:
            probe = Probe(Kind.CONNECT, target.address, local, expected, port=target.port)
        else:
            probe = _echo(target.address, local, expected=expected)
        yield Planned(probe, Aim.OUTSIDE)


def _reaches_outside(source: Attached, target: Target) -> bool | None:
    """Returns the same as `answers`. Answers to packets with a pod's own address depend on the routes outside."""
    address = next(each for each in (*source.interface.addresses, None) if each is None or each.family == target.family)
    if address is None or _is_within(target, f"{address.address}/{address.prefix_length}"):
        return None
    if not source.pod.nad:
        return True
    if source.interface.ip_fabric_snat:
        return True if address.subnet_gateway is not None else None
    return None if source.interface.ip_fabric_forwarding else False


def _is_within(target: Target, cidr: str) -> bool:
    return ip_address(target.address) in ip_network(cidr, strict=False)


def _echo(target: str, local: str, *, expected: bool) -> Probe:
    return Probe(Kind.ECHO, target, local, expected, port=0)
