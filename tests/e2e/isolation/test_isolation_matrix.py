"""Isolation of networks with equal subnets, addresses and MACs: who reaches whom, and where forged frames end."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from cni_contrail.datapath.desired import GATEWAY_MAC
from contrail_config.objects import VirtualMachineInterface
from demo.container_runtime import PodSandbox
from demo.echo import reaches
from demo.matrix import asked, cells, wrong
from tests.e2e.isolation.equal_networks import AROUND, NETWORKS, EqualNetworks, Interface, equal_networks
from tests.support import frames
from tests.support.forged_frames import FLOODED, FORGED, HONEST, MARK, SPOOFED
from tests.support.frames import PacketSocket
from tests.support.network_capture import NetworkCapture

_CONCURRENT = 64
_KINDS = [*HONEST, *FORGED]
_LAST = b"the last frame"
_NODE = ("192.0.2.1", "2001:db8::1")
_TAG = re.compile(rb"@(\d\d)\.(\d)\.(\d)\.(\d\d)@")


class Ping(NamedTuple):
    """An echo request from a namespace (a path) and one of its addresses."""

    namespace: str
    source: str
    target: str


@pytest.fixture(scope="module")
def networks() -> Iterator[EqualNetworks]:
    with equal_networks() as made:
        yield made


def test_pods_reach_each_other_in_each_network_and_in_no_other(networks: EqualNetworks) -> None:
    wanted = list(cells(networks.pods))
    in_networks = [cell for cell in wanted if cell.must_reach and cell.network != "pod network"]
    assert len(in_networks) == NETWORKS * 3 * 2 * 2  # ordered pairs of a network's pods, in both families
    # Per pod: 12 networks of its classes with an address of their own, and 5 networks of the other class with 3.
    assert sum(not cell.must_reach for cell in wanted) == NETWORKS * (12 + 15) * 2
    assert list(wrong(asked(wanted))) == []


def test_every_interface_reaches_the_gateways_of_its_network(networks: EqualNetworks) -> None:
    pings = [ping for gateway in AROUND.gateways for ping in _from_networks(networks.interfaces, gateway)]
    assert _answered(pings) == pings


def test_node_and_pod_network_are_reachable_from_index_0_alone(networks: EqualNetworks) -> None:
    for address in _NODE:
        subprocess.run(["ip", "address", "add", address, "dev", "lo"], check=True, timeout=10)
    first, second = (_index_0(networks.pods[number]) for number in (0, 1))
    gateways = [each.subnet_gateway for each in first.addresses if each.subnet_gateway is not None]
    targets = [*_NODE, *gateways, *(each.address for each in second.addresses)]
    assert len(targets) == 6
    assert _answered([ping for target in targets for ping in _from_networks(networks.interfaces, target, but=1)]) == []
    pings = [
        Ping(pod.attachment.netns, own.address, target)
        for pod in networks.pods
        for own in _index_0(pod).addresses
        for target in targets
        if (":" in target) == (":" in own.address) and target != own.address
    ]
    assert _answered(pings) == pings


def test_forged_frames_are_dropped_and_counted_by_port_and_no_frame_is_seen_in_another_network(
    networks: EqualNetworks,
) -> None:
    namespaces = networks.node.networks.namespaces
    before = _spoofed(_drops(networks), networks.vnis)  # a port is mute until it is connected
    with ExitStack() as stack:
        captures = [NetworkCapture(namespaces.path(vni)) for vni in networks.vnis]
        own = NetworkCapture("/proc/thread-self/ns/net")
        for capture in (*captures, own):
            stack.callback(capture.close)
        wires = {each.port: PacketSocket(each.namespace, each.link) for each in networks.interfaces}
        for wire in wires.values():
            stack.callback(wire.close)
        for network in range(NETWORKS):
            _send_all_kinds(networks.of(network), wires)
        received = {each.port: _received(each, wires[each.port]) for each in networks.interfaces}
        for each in networks.interfaces:
            assert received[each.port] == _expected(each, networks), each
        for network, capture in enumerate(captures):
            assert {tag.network for tag in _tags(capture.frames())} == {network}
        assert list(_tags(own.frames())) == []
    drops = _drops(networks)
    assert _spoofed(drops, networks.vnis) - before == dict.fromkeys(received, 2 * len(SPOOFED))
    assert all(drops[str(vni)]["broadcast"] >= 3 * 2 * 2 * len(FLOODED) for vni in networks.vnis)


def test_forged_packets_of_index_0_are_dropped_and_counted_by_port(networks: EqualNetworks) -> None:
    before = _spoofed(_drops(networks), [0])
    with ExitStack() as stack:
        wires = [PacketSocket(sandbox, "eth0") for sandbox in networks.sandboxes]
        for wire in wires:
            stack.callback(wire.close)
        for number, pod in enumerate(networks.pods):
            following = networks.pods[(number + 1) % len(networks.pods)]
            for packet in _forged_packets(pod, following, networks.pods[number - 1]):
                kind = frames.IPV4 if packet[0] >> 4 == 4 else frames.IPV6
                wires[number].send(frames.ethernet(_index_0(pod).mac, GATEWAY_MAC, kind, packet))
            (target,) = (each.address for each in _index_0(following).addresses if each.family == 4)
            (source,) = (each.address for each in _index_0(pod).addresses if each.family == 4)
            last = frames.ipv4(source, target, frames.udp(_LAST))
            wires[number].send(frames.ethernet(_index_0(pod).mac, GATEWAY_MAC, frames.IPV4, last))
        for wire in wires:
            assert [frame for frame in wire.received_until(_LAST) if MARK in frame] == []
    assert _spoofed(_drops(networks), [0]) - before == dict.fromkeys(networks.index_0_ports, 4)


def _from_networks(interfaces: Iterable[Interface], target: str, *, but: int | None = None) -> Iterator[Ping]:
    """Echo requests from every interface in a network, but those of one pod, which has the target itself."""
    for each in interfaces:
        if each.pod != but:
            source = each.sender.ipv6 if ":" in target else each.sender.ipv4
            yield Ping(each.namespace.path, source, target)


def _answered(pings: Sequence[Ping]) -> list[Ping]:
    def is_answered(ping: Ping) -> bool:
        return reaches(ping.namespace, ping.target, source=ping.source, timeout=1.5)

    with ThreadPoolExecutor(_CONCURRENT) as threads:
        return [ping for ping, answer in zip(pings, threads.map(is_answered, pings), strict=True) if answer]


def _index_0(pod: PodSandbox) -> VirtualMachineInterface:
    assert pod.pod.machine is not None
    return pod.pod.machine.interfaces[0]


class _Tag(NamedTuple):
    """What a frame says of itself: network and place of its sender, place of its receiver, and its kind."""

    network: int
    sender: int
    receiver: int
    kind: str

    def encode(self) -> bytes:
        """Returns as many bytes as MARK has."""
        text = f"@{self.network:02}.{self.sender}.{self.receiver}.{_KINDS.index(self.kind):02}"
        return text.encode().ljust(len(MARK), b"@")


def _tags(found: Iterable[bytes]) -> Iterator[_Tag]:
    for frame in found:
        for network, sender, receiver, kind in _TAG.findall(frame):
            yield _Tag(int(network), int(sender), int(receiver), _KINDS[int(kind)])


def _send_all_kinds(interfaces: Sequence[Interface], wires: dict[str, PacketSocket]) -> None:
    """Sends a frame of each kind from each interface to each other one of the network, then a last one each."""
    pairs = [(source, target) for source in interfaces for target in interfaces if target is not source]
    for source, target in pairs:
        for kind, forge in (HONEST | FORGED).items():
            tag = _Tag(source.network, source.place, target.place, kind)
            frame = forge(source.sender, target.sender, AROUND)
            assert frame.count(MARK) == 1
            wires[source.port].send(frame.replace(MARK, tag.encode()))
    for source, target in pairs:
        last = frames.ipv4(source.sender.ipv4, target.sender.ipv4, frames.udp(_LAST))
        wires[source.port].send(frames.ethernet(source.sender.mac, target.sender.mac, frames.IPV4, last))


def _received(interface: Interface, wire: PacketSocket) -> set[_Tag]:
    """The frames that the interface got from the two others, without errors about frames of its own."""
    found = [*wire.received_until(_LAST), *wire.received_until(_LAST)]
    return {tag for tag in _tags(found) if tag.sender != interface.place or tag.network != interface.network}


def _expected(own: Interface, networks: EqualNetworks) -> set[_Tag]:
    """All honest frames of its network that are sent to an interface, and those to all."""
    return {
        _Tag(own.network, other.place, receiver.place, kind)
        for other in networks.of(own.network)
        for receiver in networks.of(own.network)
        for kind in HONEST
        if own is not other is not receiver and (receiver is own or kind == "ARP announcement")
    }


def _forged_packets(pod: PodSandbox, to: PodSandbox, other: PodSandbox) -> Iterator[bytes]:
    """Packets whose sources are those of another pod, and those of the pod itself in a network."""
    assert pod.pod.machine is not None
    forged = [*_index_0(other).addresses, *pod.pod.machine.interfaces[1].addresses]
    for source in forged:
        (target,) = (each.address for each in _index_0(to).addresses if each.family == source.family)
        if source.family == 4:
            yield frames.ipv4(source.address, target, frames.udp(MARK))
        else:
            yield frames.ipv6(source.address, target, frames.UDP, frames.udp(MARK))


def _drops(networks: EqualNetworks) -> dict[str, Any]:
    """The drops of all networks, from the first report after a restart: later ones leave out what has not changed."""
    node = networks.node
    assert node.manager.stop() == 0
    node.manager.start()
    drops: dict[str, Any] = {}

    def is_whole() -> bool:
        drops.update((node.report()["report"] or {"drops": {}})["drops"])
        return all(str(vni) in drops for vni in (0, *networks.vnis))

    node.manager.wait_until(is_whole, what="reported")
    return drops


def _spoofed(drops: dict[str, Any], vnis: Iterable[int]) -> Counter[str]:
    """Packets dropped as spoofing, by port."""
    return sum((Counter(drops[str(vni)]["ports"]) for vni in vnis), Counter[str]())
