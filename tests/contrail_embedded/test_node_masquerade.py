"""Masquerade of an embedded node: which hosts outside see pods with their own addresses."""

import json
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.support.datapath_node import DatapathNode, datapath_node
from tests.support.netns import Netns

POD_NETWORK = {"pod-network": {"subnets": ["10.32.0.0/16", "fd00:32::/64"]}}
NODE = {4: "192.0.2.1", 6: "2001:db8::1"}
OUTSIDE = {4: "192.0.2.2", 6: "2001:db8::2"}
EXCLUDED = {4: "198.51.100.2", 6: "2001:db8:1::2"}
_LENGTHS = {4: 24, 6: 64}
_TIMEOUT = 10.0  # seconds


@contextmanager
def outside_of(node: DatapathNode) -> Iterator[Netns]:
    """A host on the node's network that knows the way to pods; it has addresses in two networks."""
    assert node.manager.is_running
    host = Netns("outside")
    try:
        _ip("link", "add", "fabric", "up", "type", "veth", "peer", "name", "eth0", "netns", host.name)
        host.ip("link", "set", "eth0", "up")
        for family, length in _LENGTHS.items():
            without_detection = ["nodad"] if family == 6 else []
            _ip("address", "add", f"{NODE[family]}/{length}", "dev", "fabric", *without_detection)
            for address in (OUTSIDE[family], EXCLUDED[family]):
                host.ip("address", "add", f"{address}/{length}", "dev", "eth0", *without_detection)
            _ip("route", "add", f"{EXCLUDED[family]}/{32 if family == 4 else 128}", "via", OUTSIDE[family])
        for subnet, via in zip(POD_NETWORK["pod-network"]["subnets"], NODE.values(), strict=True):
            host.ip("route", "add", subnet, "via", via)
        yield host
    finally:
        host.delete()


@pytest.mark.parametrize(
    ("options", "seen_outside", "seen_in_excluded"),
    [
        ([], "node", "node"),
        (["--masquerade-excluded", "198.51.100.0/24, 2001:db8:1::/64"], "node", "pod"),
        (["--no-masquerade"], "pod", "pod"),
    ],
    ids=["all masqueraded", "CIDRs excluded", "not masqueraded"],
)
def test_hosts_outside_see_the_node_unless_their_network_is_excluded(
    options: Sequence[str], seen_outside: str, seen_in_excluded: str
) -> None:
    with datapath_node(POD_NETWORK, options=options) as node, node.attached("web") as pod, outside_of(node) as outside:
        for family in (4, 6):
            seen = {"node": NODE[family], "pod": _index_0(pod.namespace, family)}
            assert _seen_by(outside, OUTSIDE[family], pod.namespace) == seen[seen_outside]
            assert _seen_by(outside, EXCLUDED[family], pod.namespace) == seen[seen_in_excluded]


def _index_0(namespace: Netns, family: int) -> str:
    (link,) = json.loads(namespace.ip("-json", f"-{family}", "address", "show", "dev", "eth0", "scope", "global"))
    (address,) = (each["local"] for each in link["addr_info"] if each)
    return str(address)


def _seen_by(host: Netns, target: str, namespace: Netns) -> str:
    """The address from which a connection of a pod comes to a host."""
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    with host.inside():
        listener = socket.create_server((target, 0), family=family)
    with listener:
        listener.settimeout(_TIMEOUT)
        with namespace.inside():
            connection = socket.create_connection(listener.getsockname()[:2], timeout=_TIMEOUT)
        with connection:
            accepted, peer = listener.accept()
            accepted.close()
    return str(peer[0])


def _ip(*arguments: str) -> None:
    """Runs `ip` in the node's namespace, in which this thread is."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=10)
