"""What connections do when a table of connections is full: in a network, by its uplink, and at index 0."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cni_contrail.datapath.routed.conftest import OUTSIDE, RoutedNode
from tests.cni_contrail.datapath.uplinks.conftest import Pod, UplinkNode
from tests.support import connection_table
from tests.support.echo import reaches
from tests.support.netns import Netns

_SECONDS = 1.0
"""A new connection that is dropped gets no answer in this time; an existing one has 20 s."""


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[tuple[UplinkNode, str, Pod, Pod]]:
    """Two connected pods of a network with an uplink, with the path of the network's namespace."""
    with ExitStack() as stack:
        node = UplinkNode(tmp_path / "networks", stack)
        network, first = node.add_pod(node.network(snat=True))
        network, second = node.add_pod(network, number=3)
        assert not node.reconcile(network).problems
        yield node, node.networks.namespaces.path(network.vni), first, second


@pytest.fixture
def routed() -> Iterator[RoutedNode]:
    """A node with a connected pod of index 0."""
    with ExitStack() as stack:
        node = RoutedNode(stack)
        node.connect(node.add_pod(2))
        node.connect(node.add_pod(3))
        node.reconcile()
        yield node


def test_packets_between_pods_of_a_network_are_not_tracked(pods: tuple[UplinkNode, str, Pod, Pod]) -> None:
    _, namespace, first, second = pods
    with _connection(first.namespace, second.namespace, second.ipv4) as answers:
        assert answers()
        assert connection_table.number(namespace) == 0


def test_a_full_table_of_a_network_concerns_only_new_connections_by_its_uplink(
    pods: tuple[UplinkNode, str, Pod, Pod],
) -> None:
    node, namespace, first, second = pods
    with (
        _connection(first.namespace, node.outside, OUTSIDE[0]) as outside,
        _connection(first.namespace, second.namespace, second.ipv4) as inside,
    ):
        assert outside()
        connection_table.fill(namespace)
        assert not reaches(first.namespace, OUTSIDE[0], timeout=_SECONDS)
        assert outside()
        assert inside()
        for address in (second.ipv4, second.ipv6):
            assert reaches(first.namespace, address), address


def test_a_full_table_of_the_node_ends_no_connection_of_index_0_and_begins_none(routed: RoutedNode) -> None:
    pod, other = routed.pods
    with (
        _connection(pod.namespace, routed.outside, OUTSIDE[0]) as outside,
        _connection(pod.namespace, other.namespace, other.ipv4) as inside,
    ):
        assert outside()
        assert inside()
        connection_table.fill(routed.namespace.path)
        for address in (OUTSIDE[0], other.ipv4):
            assert not reaches(pod.namespace, address, timeout=_SECONDS), address
        assert outside()
        assert inside()


class _Answers:
    """A TCP connection; calling it sends a byte and returns whether it arrives, and is answered."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self._client, self._server = client, server

    def __call__(self) -> bool:
        for source, sink in ((self._client, self._server), (self._server, self._client)):
            source.sendall(b"x")
            if sink.recv(1) != b"x":
                return False
        return True


@contextmanager
def _connection(client: Netns, server: Netns, address: str) -> Iterator[_Answers]:
    with ExitStack() as stack:
        with server.inside():
            listener = stack.enter_context(socket.create_server((address, 0)))
        with client.inside():
            connected = stack.enter_context(socket.create_connection(listener.getsockname(), timeout=20))
        listener.settimeout(20)
        accepted = stack.enter_context(listener.accept()[0])
        accepted.settimeout(20)
        yield _Answers(connected, accepted)
