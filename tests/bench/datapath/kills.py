"""Packets between two pods that are lost while the processes that program the kernel are killed and restarted.

Before each start something is damaged that does not concern these packets, so that the process has something to
program, and may be killed while it does.
"""

import random
import time
from contextlib import ExitStack
from typing import Any

from tests.support.datapath_node import DatapathNode, datapath_node
from tests.support.echo_stream import EchoStream

_LONGEST_LIFE = 2.0  # seconds until the next kill
_DAMAGES = (("nft", "flush", "ruleset"), ("ip", "address", "flush", "dev", "br0"))


def measure_kills(count: int) -> dict[str, Any]:
    """Kills manager, with its agent, and daemon in turn, at random moments; pings in both families at 1 kHz."""
    with datapath_node() as node, node.attached("a") as first, node.attached("b") as second:
        _restart_daemon(node)
        streams = [EchoStream(first.namespace, address) for address in second.addresses]
        with ExitStack() as stack:
            for stream in streams:
                stack.enter_context(stream.running())
            started = time.monotonic()
            for number in range(count):
                started = time.monotonic()
                _kill_and_start(node, number)
                time.sleep(random.uniform(0, _LONGEST_LIFE))  # noqa: TID251 - the random moment of the next kill
            node.manager.wait_until_ready()
            node.await_report(started)
    sent, lost = sum(stream.sent for stream in streams), sum(stream.lost() for stream in streams)
    return {f"{count} kills": {"packets": sent, "lost": lost, "must": 0}}


def _restart_daemon(node: DatapathNode) -> None:
    """Makes it learn the ports: with an older state it would make a flushed filter again without their addresses."""
    started = time.monotonic()
    node.daemon.kill()
    node.daemon.launch()
    node.await_report(started)


def _kill_and_start(node: DatapathNode, number: int) -> None:
    process = (node.manager, node.daemon)[number % 2]
    process.kill()
    node.networks.run(node.vni, *random.choice(_DAMAGES))
    process.launch()
