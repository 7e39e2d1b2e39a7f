"""Pods of one network on the nodes of a cluster, and what is asked of them: to reach each other without loss."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.node import Node
from tests.e2e.polling import wait_until
from tests.support.echo import reaches
from tests.support.echo_stream import EchoStream
from tests.support.netns import Netns
from tests.support.tcp_flow import TcpFlow

NETWORK = "blue"


class Pod(NamedTuple):
    """An attached pod; `addresses` are those in the network, `index_0` those in the pod network."""

    name: str
    node: Node
    sandbox: Netns
    addresses: tuple[str, ...]
    index_0: tuple[str, ...]

    @property
    def everything(self) -> tuple[str, ...]:
        """All its addresses."""
        return self.addresses + self.index_0


@contextmanager
def attached(cluster: Cluster, name: str, node: Node, **wished: object) -> Iterator[Pod]:
    """Attaches a pod, as kubelet does: again until it succeeds. Deletes it at the end."""
    cluster.add_pod(name, node, networks=json.dumps([{"name": NETWORK, **wished}]))
    sandbox = Netns("pod")
    try:
        wait_until(lambda: "interfaces" in node.add(name, sandbox), what=f"{name} is attached")
        first, second = ([each["address"] for each in one["addresses"]] for one in cluster.interfaces()[name])
        yield Pod(name, node, sandbox, tuple(second), tuple(first))
    finally:
        if node.daemon.is_running:
            node.delete(name, sandbox)
        sandbox.delete()
        cluster.remove_pod(name)


class Traffic(NamedTuple):
    """Echo requests at 1 kHz, and TCP connections, between pods."""

    echoes: list[EchoStream]
    flows: list[TcpFlow]

    @property
    def sent(self) -> int:
        """Number of echo requests."""
        return sum(stream.sent for stream in self.echoes)

    @property
    def lost(self) -> int:
        """Number of echo requests without an answer; after the end."""
        return sum(stream.lost() for stream in self.echoes)

    @property
    def broken(self) -> list[str]:
        """What broke TCP connections; after the end."""
        return [failure for flow in self.flows if (failure := flow.failure()) is not None]


@contextmanager
def traffic(pods: Sequence[Pod]) -> Iterator[Traffic]:
    """Packets from each of the pods to the next one, in the network and at index 0, in one family each."""
    pairs = list(zip(pods, [*pods[1:], pods[0]], strict=True))
    ways = [(source, target, at) for source, target in pairs for at in (target.addresses[0], target.index_0[-1])]
    with ExitStack() as stack:
        made = Traffic(
            [EchoStream(source.sandbox, address) for source, _, address in ways],
            [TcpFlow(source.sandbox, target.sandbox, address) for source, target, address in ways],
        )
        for running in [each.running for each in made.echoes] + [each.running for each in made.flows]:
            stack.enter_context(running())
        yield made


@contextmanager
def no_loss(pods: Sequence[Pod]) -> Iterator[None]:
    """Fails if an echo request between any two of the pods is lost, or a TCP connection breaks."""
    with traffic(pods) as made:
        yield
    assert all(stream.sent > 0 for stream in made.echoes)
    assert [stream.gaps() for stream in made.echoes if stream.lost()] == []
    assert made.broken == []


def all_reach_each_other(pods: Sequence[Pod]) -> None:
    """Fails unless all pods reach all addresses of all others."""
    for source in pods:
        for target in pods:
            for address in target.everything if target is not source else ():
                assert reaches(source.sandbox, address, timeout=10), (source.name, target.name, address)


def start_daemon_again(node: Node, *environment: str) -> None:
    """Starts a daemon, and waits until it has compared the kernel with what the agent serves.

    `environment` is a command that runs another one.
    """
    since = time.monotonic()
    node.start_daemon(*environment)
    assert node.await_report(since)["problems"] == {}
