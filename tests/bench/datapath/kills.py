"""Packets between two pods that are lost while the processes that program the kernel are killed and restarted.

Before each start something is damaged that does not concern these packets, so that the process has something to
program, and may be killed while it does.
"""

import random
import time
from contextlib import ExitStack
from typing import Any

from tests.support.datapath_node import DatapathNode, NodeDaemon, datapath_node
from tests.support.echo_stream import EchoStream
from tests.support.embedded_process import EmbeddedProcess

_LONGEST_LIFE = 2.0  # seconds until the next kill
_DAMAGES = (("nft", "flush", "ruleset"), ("ip", "address", "flush", "dev", "br0"))


def measure_kills(count: int) -> dict[str, Any]:
    """Kills manager, with its agent, and daemon in turn, at random moments; pings in both families at 1 kHz.

    The manager is the last one: it programs the kernel as soon as it runs again, while the daemon may be on standby.
    """
    with datapath_node() as node, node.attached("a") as first, node.attached("b") as second:
        node.await_ports(2)  # else flushed rules come back without the newest port, which is mute for a moment
        streams = [EchoStream(first.namespace, address) for address in second.addresses]
        with ExitStack() as stack:
            for stream in streams:
                stack.enter_context(stream.running())
            started = time.monotonic()
            for number in range(count):
                started = time.monotonic()
                _kill_and_start(node, (node.daemon, node.manager)[(count - number) % 2])
                time.sleep(random.uniform(0, _LONGEST_LIFE))  # noqa: TID251 - the random moment of the next kill
            node.manager.wait_until_ready()
            node.await_report(started)
    sent, lost = sum(stream.sent for stream in streams), sum(stream.lost() for stream in streams)
    found = {"packets": sent, "lost": lost, "must": 0}
    return {f"{count} kills": {**found, "gaps": [stream.gaps() for stream in streams]} if lost else found}


def _kill_and_start(node: DatapathNode, process: NodeDaemon | EmbeddedProcess) -> None:
    process.kill()
    node.networks.run(node.vni, *random.choice(_DAMAGES))
    process.launch()
