"""A network is reprogrammed while one of its pods sends as fast as it can."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.cni_contrail.datapath.conftest import Pod, VirtualNetwork
from tests.support import frames
from tests.support.frames import PacketSocket

Pair = tuple[Pod, Pod]
_TIMEOUT = 20.0  # seconds
_PROGRESS = 1 << 20  # bytes
_FORGED, _LAST = b"a forged packet", b"the last packet"


class Stream:
    """A TCP stream between two pods, sent and received as fast as possible in threads."""

    def __init__(self, first: Pod, second: Pod, stack: ExitStack) -> None:
        with second.namespace.inside():
            listener = stack.enter_context(socket.create_server((second.ipv4, 0)))
        with first.namespace.inside():
            self._source = stack.enter_context(socket.create_connection(listener.getsockname(), timeout=_TIMEOUT))
        self._sink = stack.enter_context(listener.accept()[0])
        self._sink.settimeout(_TIMEOUT)
        self._progress = threading.Condition()
        self._received = 0
        self._ending = threading.Event()
        self.errors: list[str] = []

    @contextmanager
    def running(self) -> Iterator["Stream"]:
        """Sends while inside."""
        threads = [threading.Thread(target=self._run, args=(each,)) for each in (self._send, self._receive)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            for thread in threads:
                thread.join()

    def progresses(self) -> bool:
        """Waits until more has been received."""
        with self._progress:
            target = self._received + _PROGRESS
            return self._progress.wait_for(lambda: self._received >= target or bool(self.errors), _TIMEOUT)

    def _run(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            with self._progress:
                self.errors.append(str(error))
                self._progress.notify_all()

    def _send(self) -> None:
        data = bytes(1 << 16)
        while not self._ending.is_set():
            self._source.send(data)
        self._source.shutdown(socket.SHUT_WR)

    def _receive(self) -> None:
        while received := len(self._sink.recv(1 << 16)):
            with self._progress:
                self._received += received
                self._progress.notify_all()


@pytest.fixture
def stream(pair: Pair) -> Iterator[Stream]:
    with ExitStack() as stack, Stream(*pair, stack).running() as stream:
        yield stream


def _reprogram(network: VirtualNetwork) -> Iterator[str]:
    """Ports come and go, the filter is lost, and so are the settings of the bridge; each time all is reconciled."""
    for number in range(10, 13):
        yield f"port {number} added"
        pod = network.add_pod(number)
        network.reconcile()
        yield f"port {number} removed"
        network.pods.remove(pod)
        network.ip("link", "delete", pod.port.link)
        network.reconcile()
    damages = (
        ("nft", "flush", "ruleset"),
        ("ip", "address", "flush", "dev", "br0"),
        ("ip", "link", "set", "br0", "mtu", "1300"),
    )
    for damage in damages:
        yield " ".join(damage)
        network.run(*damage)
        assert network.reconcile().changes > 0


def test_a_stream_at_line_rate_is_not_interrupted(network: VirtualNetwork, stream: Stream) -> None:
    for change in _reprogram(network):
        assert stream.progresses(), change
        assert stream.errors == [], change
    assert stream.progresses()
    assert network.reconcile().changes == 0


def test_no_forged_packet_passes_while_ports_come_and_go(network: VirtualNetwork, pair: Pair) -> None:
    forger, victim = pair
    with ExitStack() as stack:
        sending, receiving = PacketSocket(forger.namespace, "eth0"), PacketSocket(victim.namespace, "eth0")
        stack.callback(sending.close)
        stack.callback(receiving.close)
        with _flooding(sending, _packet(forger, victim, "10.7.0.66", _FORGED)):
            for number in range(10, 20):
                pod = network.add_pod(number)
                network.reconcile()
                network.pods.remove(pod)
                network.ip("link", "delete", pod.port.link)
                network.reconcile()
        sending.send(_packet(forger, victim, forger.ipv4, _LAST))
        received = receiving.received_until(_LAST)
    assert [frame for frame in received if _FORGED in frame] == []


def _packet(forger: Pod, victim: Pod, source: str, payload: bytes) -> bytes:
    packet = frames.ipv4(source, victim.ipv4, frames.udp(payload))
    return frames.ethernet(forger.mac, victim.mac, frames.IPV4, packet)


@contextmanager
def _flooding(sending: PacketSocket, frame: bytes) -> Iterator[None]:
    """Sends the frame as fast as possible while inside, and at least for some time before the first change."""
    ending, started = threading.Event(), threading.Event()

    def send() -> None:
        while not ending.is_set():
            sending.send(frame)
            started.set()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        assert started.wait(_TIMEOUT)
        yield
    finally:
        ending.set()
        thread.join()
