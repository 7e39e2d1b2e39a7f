"""Counters of links as the kernel has them."""

from cni_contrail.link.counters import Counters, dump_counters, parse_counters
from cni_contrail.link.exchange import RouteSocket
from tests.support.frames import PacketSocket
from tests.support.netns import Netns

FRAME = bytes.fromhex("020000000002 020000000001 88b5") + bytes(86)


def test_packets_and_bytes_are_counted_in_both_directions(node: Netns) -> None:
    node.run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")  # the kernel sends nothing by itself
    node.ip("link", "add", "left", "type", "veth", "peer", "name", "right")
    for end in ("left", "right"):
        node.ip("link", "set", end, "up")
    wire = PacketSocket(node, "left")
    try:
        for _ in range(3):
            wire.send(FRAME)
    finally:
        wire.close()
    with node.inside(), RouteSocket() as kernel:
        found = dict(map(parse_counters, kernel.dump(dump_counters())))
    assert found["left"] == Counters(received_packets=0, received_bytes=0, sent_packets=3, sent_bytes=300)
    assert found["right"] == Counters(received_packets=3, received_bytes=300, sent_packets=0, sent_bytes=0)
    assert {"left", "right", "lo"} <= found.keys()
