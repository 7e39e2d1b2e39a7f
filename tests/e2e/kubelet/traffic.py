"""Traffic between running pods, which must lose nothing."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.e2e.kubelet.cluster import Cluster, Pod
from tests.e2e.kubelet.pod_cgroups import process_of
from tests.support.echo_stream import EchoStream
from tests.support.netns import inside
from tests.support.tcp_flow import TcpFlow

_INTERVAL = 0.005  # seconds between two packets: each stream is a thread


class _Place(NamedTuple):
    """The network namespace of a process."""

    process: int

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """Moves the current thread into it."""
        return inside(str(Path("/proc", str(self.process), "ns", "net")))


@contextlib.contextmanager
def no_loss(cluster: Cluster, pods: list[Pod]) -> Iterator[None]:
    """Fails if an echo request from one pod to an address of the other is lost, or a TCP connection breaks."""
    nodes = {node.name: node for node in cluster.nodes}
    first, second = pods
    source, target = (_Place(process_of(nodes[pod.node].host, pod.uid)) for pod in (first, second))
    addresses = [address for each in second.addresses.values() for address in each]
    echoes = [EchoStream(source, address, interval=_INTERVAL) for address in addresses]
    flows = [TcpFlow(source, target, address, interval=_INTERVAL) for address in addresses]
    with contextlib.ExitStack() as stack:
        for running in [each.running for each in echoes] + [each.running for each in flows]:
            stack.enter_context(running())
        yield
    assert all(stream.sent for stream in echoes)
    assert [stream.gaps() for stream in echoes if stream.lost()] == []
    assert [failure for flow in flows if (failure := flow.failure()) is not None] == []
