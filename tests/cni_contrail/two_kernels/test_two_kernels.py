"""Two nodes with a kernel each, joined by a link. `scripts/kernels` runs this in two guests at the same time.

The number of the guest's node, 1 or 2, is in a file that it shares with the machine.
"""

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cni_contrail.datapath.desired import (
    LocalPort,
    Network,
    RemoteBlock,
    RemoteEndpoint,
    Routed,
    RoutedNetwork,
    RoutedPort,
    Underlay,
)
from cni_contrail.datapath.node_reconciler import NodeReconciler
from tests.support.echo import reaches
from tests.support.netns import Netns
from tests.support.node_fabric import GATEWAYS, MTU, PORT, ROUTED_GATEWAYS, ROUTED_SUBNETS
from tests.support.node_networks import NodeNetworks
from tests.support.plugged_pods import plug, plug_routed, route_by_gateways

_NUMBER = Path("/run/exchange/node")
_TUNNELS = {1: ("192.0.2.1", "2001:db8::1"), 2: ("192.0.2.2", "2001:db8::2")}
_L3 = 5_300_003
"""The network in which nodes know blocks of addresses; in the others they know pods."""

_PLACES = {5_300_001: {1: 2, 2: 3}, 5_300_002: {1: 2, 2: 4}, _L3: {1: 2, 2: 66}}
"""Last part of MAC and addresses of the pod, by network and node; those of the first node are equal."""

_OVER_IPV6 = {5_300_002}
"""Networks whose tunnels are of IPv6, as are those of index 0."""

_BLOCKS = {1: ("10.7.0.0/26", "fd07::/122"), 2: ("10.7.0.64/26", "fd07::40/122")}
_BLOCKS_0 = {1: ("10.9.0.0/26", "fd09::/122"), 2: ("10.9.0.64/26", "fd09::40/122")}
_PODS_0 = {1: ("10.9.0.5", "fd09::5"), 2: ("10.9.0.69", "fd09::45")}
"""Addresses of the pod of index 0, by node; the first ones of its blocks are the node's own."""

_READY_PORT = 7000
_PATIENCE = 200.0  # seconds: an emulated kernel may start that much later than the other one


@pytest.fixture
def number() -> int:
    """This node's number; its link to the other node is up."""
    found = int(_NUMBER.read_text())
    for command in (
        f"address add {_TUNNELS[found][0]}/24 dev eth0",
        f"address add {_TUNNELS[found][1]}/64 dev eth0 nodad",
        "link set eth0 up",
    ):
        subprocess.run(["ip", *command.split()], check=True, timeout=60)
    return found


@pytest.fixture
def networks(tmp_path: Path) -> Iterator[NodeNetworks]:
    made = NodeNetworks(tmp_path / "networks")
    yield made
    made.close()


def test_pods_of_two_kernels_reach_those_of_their_network_and_no_other(number: int, networks: NodeNetworks) -> None:
    other = 3 - number
    reconciler = NodeReconciler(networks.namespaces)
    assert not reconciler.reconcile([_network(vni, number)._replace(remotes=(), blocks=()) for vni in _PLACES]).problems
    pods = {vni: _attached(networks, vni, _port(vni, number)) for vni in _PLACES}
    pod_0 = _attached_at_index_0(_port_0(number))
    underlay = Underlay(_TUNNELS[number], PORT, frozenset(_TUNNELS[other]), _index_0(number))
    outcome = reconciler.reconcile(
        [_network(vni, number) for vni in _PLACES], Routed((_port_0(number),), None), underlay
    )
    assert not outcome.problems
    _meet(number)
    for vni, pod in pods.items():
        for each in _PLACES:
            for address in _port(each, other).addresses:
                is_own = address in _port(vni, other).addresses
                assert reaches(pod, address, timeout=20 if is_own else 1) == is_own, (vni, address)
    for address in _PODS_0[other]:
        assert reaches(pod_0, address, timeout=20), address
    _meet(number)  # the other node's pods ask this one's
    for pod in (*pods.values(), pod_0):
        pod.delete()


def _port(vni: int, number: int) -> LocalPort:
    place = _PLACES[vni][number]
    return LocalPort("tap1", f"02:00:00:00:00:{place:02x}", (f"10.7.0.{place}", f"fd07::{place:x}"))


def _network(vni: int, number: int) -> Network:
    other = 3 - number
    known = Network(vni, MTU, GATEWAYS, (_port(vni, number),), is_routed=vni == _L3)
    if vni == _L3:
        return known._replace(blocks=tuple(RemoteBlock(cidr, _TUNNELS[other][0]) for cidr in _BLOCKS[other]))
    remote, tunnel = _port(vni, other), _TUNNELS[other][vni in _OVER_IPV6]
    return known._replace(remotes=(RemoteEndpoint(remote.mac, remote.addresses, tunnel),))


def _attached(networks: NodeNetworks, vni: int, port: LocalPort) -> Netns:
    pod = Netns("pod")
    plug(pod, networks, vni, port, mtu=MTU)
    if vni == _L3:
        route_by_gateways(pod, GATEWAYS)
    return pod


def _attached_at_index_0(port: RoutedPort) -> Netns:
    pod = Netns("pod")
    plug_routed(pod, port, ROUTED_SUBNETS, mtu=MTU)
    return pod


def _port_0(number: int) -> RoutedPort:
    return RoutedPort("tap0", f"02:00:00:00:09:{number:02x}", _PODS_0[number], ROUTED_GATEWAYS)


def _index_0(number: int) -> RoutedNetwork:
    own = _BLOCKS_0[number]
    addresses = tuple(cidr.partition("/")[0] for cidr in own)
    remotes = tuple(RemoteBlock(cidr, _TUNNELS[3 - number][1]) for cidr in _BLOCKS_0[3 - number])
    return RoutedNetwork(1, MTU, addresses, own, remotes)


def _meet(number: int) -> None:
    """Returns when the other node has come as far."""
    with socket.create_server((_TUNNELS[number][0], _READY_PORT)) as listener:
        listener.settimeout(_PATIENCE)
        if number == 1:
            connection, _ = listener.accept()
        else:
            connection = _connected()
        with connection:
            connection.settimeout(_PATIENCE)
            connection.sendall(b".")
            assert connection.recv(1) == b"."


def _connected() -> socket.socket:
    give_up = time.monotonic() + _PATIENCE
    while True:
        try:
            return socket.create_connection((_TUNNELS[1][0], _READY_PORT), timeout=5)
        except OSError:
            assert time.monotonic() < give_up, f"the other node did not answer within {_PATIENCE:g} s"
            time.sleep(0.2)  # noqa: TID251 - another machine is polled
