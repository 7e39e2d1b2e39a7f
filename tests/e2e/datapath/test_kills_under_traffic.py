"""Agent and daemon of a node end while its pods send to each other at index 0, in both families."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.datapath.conftest import Pods
from tests.e2e.datapath.node import Node
from tests.e2e.host_process import HostProcess
from tests.e2e.polling import wait_until
from tests.support.cluster_processes import AgentProcess
from tests.support.echo_stream import EchoStream
from tests.support.netns import inside
from tests.support.tcp_flow import TcpFlow

_ENOUGH = 100  # echo requests between two steps: a tenth of a second at 1 kHz

End = Callable[[AgentProcess | HostProcess], object]


class Place(NamedTuple):
    """A network namespace by its path."""

    path: Path

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """Moves the current thread into it."""
        return inside(str(self.path))


@contextlib.contextmanager
def no_loss(node: Node, pods: Pods) -> Iterator[Callable[[], None]]:
    """Fails if one of the echo requests from a pod and the node to a pod is lost, or a TCP connection of pods breaks.

    Yields a function that waits until each sent more at 1 kHz.
    """
    own, client, web = Place(node.path), Place(pods.client.path), Place(pods.web.path)
    echoes = [EchoStream(source, address) for source in (client, own) for address in pods.web.addresses]
    flows = [TcpFlow(client, web, address) for address in pods.web.addresses]

    def await_more() -> None:
        enough = [stream.sent + _ENOUGH for stream in echoes]
        wait_until(lambda: all(one.sent >= many for one, many in zip(echoes, enough, strict=True)), what="sent")

    with contextlib.ExitStack() as stack:
        for running in [each.running for each in echoes] + [each.running for each in flows]:
            stack.enter_context(running())
        await_more()
        yield await_more
        await_more()
    assert [stream.gaps() for stream in echoes if stream.lost()] == []
    assert [failure for flow in flows if (failure := flow.failure()) is not None] == []


@pytest.mark.parametrize("end", [lambda process: process.kill(), lambda process: process.stop()], ids=["kill", "stop"])
def test_pods_of_one_node_lose_no_packet_at_index_0(node: Node, pods: Pods, end: End) -> None:
    with no_loss(node, pods) as await_more:
        end(node.agent)
        await_more()
        node.start_agent()
        end(node.daemon)
        await_more()
        alone = node.start_daemon()
        end(node.agent)
        end(node.daemon)
        await_more()
        with node.host.net.inside():
            node.agent.launch()  # ready only when the daemon reports
        together = node.start_daemon()
    assert [changes(report) for report in (alone, together)] == [(0, 0, {}), (0, 0, {})]


def changes(report: dict[str, Any]) -> tuple[int, int, Any]:
    """What a daemon changed, repaired, and could not do."""
    return report["changes"], report["repaired"], report["problems"]
