"""Faults of a node's kernel, each injected by hand on the first node, and what is to be found of it.

A fault is undone by hand, or by the daemon of the node, which repairs it.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from tests.e2e.across_nodes.checked_cluster import BLUE, CheckedCluster, Findings
from tests.e2e.across_nodes.node import MTU

_INDEX_0 = "index 0"
_STRANGE_MAC = "02:00:00:00:99:99"


class KernelFault(NamedTuple):
    """A fault on the first node: how to inject and to undo it, and what is to be found."""

    inject: Callable[[CheckedCluster], object]
    undo: Callable[[CheckedCluster], object]
    found: Callable[[CheckedCluster], Findings]


def _in_blue(fault: str, what: str) -> Findings:
    return {("node-1", BLUE, fault, what)}


def _entry(checked: CheckedCluster, mac: str, node: int) -> str:
    return f"entry of vx0 for {mac}: to node {checked.pods[node].node.addresses[0]}"


def _fdb(checked: CheckedCluster, action: str, mac: str, node: int) -> str:
    kind = () if action == "del" else ("static",)
    address = checked.pods[node].node.addresses[0]
    return checked.within("bridge", "fdb", action, mac, "dev", "vx0", "dst", address, "self", *kind)


def _link(checked: CheckedCluster, *settings: str) -> str:
    return checked.within("ip", "link", "set", *settings)


def _lower_host_ends(checked: CheckedCluster) -> None:
    """Lowers the MTU of both host ends of a pod."""
    _link(checked, checked.pods[0].host_end, "mtu", "1400")
    checked.on_node("ip", "link", "set", checked.pods[0].host_end_0, "mtu", "1400")


def _neighbour(checked: CheckedCluster, *settings: str) -> str:
    return checked.within("ip", "neighbour", *settings, "dev", "br0")


def _repaired_by_daemon(checked: CheckedCluster) -> None:
    """Lets the daemon repair the first node, and stops it again."""
    node = checked.pods[0].node
    since = time.monotonic()
    node.start_daemon()
    assert node.await_report(since)["problems"] == {}
    node.daemon.kill()


def _accepted(checked: CheckedCluster, action: str) -> None:
    address = checked.pods[1].node.addresses[0]
    checked.on_node("nft", action, "element", "inet", "contrail-tunnels", "ipv4", f"{{ {address} }}")


def _block_route(checked: CheckedCluster) -> tuple[str, str]:
    """Returns the IPv4 block of the second node, and its address."""
    node = checked.pods[1].node
    slices = [each["spec"] for each in checked.cluster.slices(node)]
    (block,) = [each for one in slices for each in one.get("blocks", ()) if "." in each]
    return block, node.addresses[0]


def _narrowed(checked: CheckedCluster, mtu: int) -> str:
    """Sets the MTU of the fabric's port to the second node, of which no node knows."""
    return checked.cluster.fabric.ip("link", "set", "node2", "mtu", str(mtu))


def _lost(source: int, target: int) -> tuple[str, str, str, str]:
    address = f"192.0.2.{target}"
    return f"node-{source}", "", "lost", f"packets of 1550 bytes to node {address}, of pods with MTU 1500"


def _block_tunnels(checked: CheckedCluster) -> None:
    """Lets a firewall of the second node drop what arrives at the tunnels' port."""
    rules = "table inet firewall { chain input { type filter hook input priority -400; udp dport 4789 drop; }; }"
    ended = checked.pods[1].node.namespace.run("nft", rules)
    assert ended.returncode == 0, ended.stderr


def _blocked(source: int, target: int) -> tuple[str, str, str, str]:
    return f"node-{source}", _INDEX_0, "blocked", f"packets of 1500 bytes through the tunnel to node 192.0.2.{target}"


KERNEL_FAULTS = {
    "missing forwarding entry of a tunnel": KernelFault(
        lambda on: _fdb(on, "del", on.pods[1].mac, 1),
        lambda on: _fdb(on, "append", on.pods[1].mac, 1),
        lambda on: _in_blue("missing", _entry(on, on.pods[1].mac, 1)),
    ),
    "stale forwarding entry of a tunnel": KernelFault(
        lambda on: _fdb(on, "append", _STRANGE_MAC, 2),
        lambda on: _fdb(on, "del", _STRANGE_MAC, 2),
        lambda on: _in_blue("stale", _entry(on, _STRANGE_MAC, 2)),
    ),
    "wrong destination of a tunnel": KernelFault(
        lambda on: _fdb(on, "replace", on.pods[1].mac, 2),
        lambda on: _fdb(on, "replace", on.pods[1].mac, 1),
        lambda on: _in_blue("wrong", _entry(on, on.pods[1].mac, 1)),
    ),
    "deleted neighbour entry": KernelFault(
        lambda on: _neighbour(on, "del", on.pods[1].addresses[0]),
        lambda on: _neighbour(on, "add", on.pods[1].addresses[0], "lladdr", on.pods[1].mac, "nud", "permanent"),
        lambda on: _in_blue("missing", f"neighbour {on.pods[1].addresses[0]}: {on.pods[1].mac}"),
    ),
    "tunnel link down": KernelFault(
        lambda on: _link(on, "vx0", "down"), _repaired_by_daemon, lambda _: _in_blue("wrong", "tunnel vx0")
    ),
    "flushed filter": KernelFault(
        lambda on: on.within("nft", "flush", "table", "bridge", "contrail"),
        _repaired_by_daemon,
        lambda _: _in_blue("wrong", "anti-spoofing filter"),
    ),
    "rule added to the filter": KernelFault(
        lambda on: on.within("nft", "insert", "rule", "bridge", "contrail", "from_ports", "accept"),
        _repaired_by_daemon,
        lambda _: _in_blue("wrong", "anti-spoofing filter"),
    ),
    "acceptance set without a node": KernelFault(
        lambda on: _accepted(on, "delete"),
        lambda on: _accepted(on, "add"),
        lambda on: {("node-1", _INDEX_0, "missing", f"filter of tunnel packets: node {on.pods[1].node.addresses[0]}")},
    ),
    "deleted address of the bridge": KernelFault(
        lambda on: on.within("ip", "address", "del", "fd07::1/64", "dev", "br0"),
        lambda on: on.within("ip", "address", "add", "fd07::1/64", "dev", "br0", "nodad"),
        lambda _: _in_blue("missing", "address fd07::1/64 of the bridge"),
    ),
    "MTU of the bridge": KernelFault(
        lambda on: _link(on, "br0", "mtu", "1400"),
        lambda on: _link(on, "br0", "mtu", "1500"),
        lambda _: _in_blue("wrong", "bridge br0"),
    ),
    "MTU of host ends": KernelFault(
        _lower_host_ends,
        _repaired_by_daemon,
        lambda on: {
            ("node-1", BLUE, "wrong", f"MTU of host end {on.pods[0].host_end}"),
            ("node-1", _INDEX_0, "wrong", f"MTU of host end {on.pods[0].host_end_0}"),
        },
    ),
    "host end taken from the bridge": KernelFault(
        lambda on: _link(on, on.pods[0].host_end, "nomaster"),
        _repaired_by_daemon,
        lambda on: _in_blue("wrong", f"host end {on.pods[0].host_end}"),
    ),
    "deleted route to a block of another node": KernelFault(
        lambda on: on.on_node("ip", "route", "del", _block_route(on)[0]),
        _repaired_by_daemon,
        lambda on: {("node-1", _INDEX_0, "missing", _text_of_route(on))},
    ),
    "forwarding of the node off": KernelFault(
        lambda on: on.on_node("sysctl", "-qw", "net.ipv4.ip_forward=0"),
        lambda on: on.on_node("sysctl", "-qw", "net.ipv4.ip_forward=1"),
        lambda _: {("node-1", _INDEX_0, "wrong", "settings of the node")},
    ),
    "tunnels' port blocked at another node": KernelFault(
        _block_tunnels,
        lambda on: on.pods[1].node.namespace.run("nft", "delete", "table", "inet", "firewall"),
        lambda _: {_blocked(1, 2), _blocked(3, 2), _blocked(2, 1), _blocked(2, 3)},
    ),
    "MTU that lies": KernelFault(
        lambda on: _narrowed(on, 1500),
        lambda on: _narrowed(on, MTU),
        lambda _: {_lost(1, 2), _lost(2, 1), _lost(2, 3), _lost(3, 2)},
    ),
}


def _text_of_route(checked: CheckedCluster) -> str:
    block, gateway = _block_route(checked)
    own = [each["spec"] for each in checked.cluster.slices(checked.pods[0].node)]
    (source,) = [each for one in own for each in one.get("nodeAddresses", ()) if "." in each]
    return f"route to {block} by {gateway} on contrail.0 from {source}"
