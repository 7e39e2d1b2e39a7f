"""Networks with ways out, from the annotation of a NAD to the packet: routes, SNAT and fabric forwarding."""

import json
import socket
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.e2e.isolation.conftest import end_of
from tests.support.datapath_node import DatapathNode, datapath_node
from tests.support.echo import reaches
from tests.support.manifests import Document, nad, write
from tests.support.netns import Netns

NODE = ("192.0.2.1", "2001:db8::1")
OUTSIDE = ("192.0.2.2", "2001:db8::2")
SUBNETS = ("10.7.0.0/24", "fd07::/64")
GATEWAYS = ("10.7.0.1", "fd07::1")
POD = ("10.7.0.10", "fd07::10")
_LENGTHS = ("24", "64")
_SNAT, _FORWARDING = "opencontrail.org/ip_fabric_snat", "opencontrail.org/ip_fabric_forwarding"
_TIMEOUT = 10.0  # seconds


@pytest.fixture
def node() -> Iterator[DatapathNode]:
    with datapath_node(options=["--fabric-subnets", ",".join(SUBNETS)]) as running:
        yield running
        end_of(running)


@pytest.fixture
def outside(node: DatapathNode) -> Iterator[Netns]:
    """A host on the node's network, which knows no pods."""
    assert node.manager.is_running
    host = Netns("outside")
    try:
        _ip("link", "add", "fabric", "up", "type", "veth", "peer", "name", "eth0", "netns", host.name)
        host.ip("link", "set", "eth0", "up")
        for own, other, length in zip(NODE, OUTSIDE, _LENGTHS, strict=True):
            _ip("address", "add", f"{own}/{length}", "dev", "fabric", *(["nodad"] if ":" in own else []))
            host.ip("address", "add", f"{other}/{length}", "dev", "eth0", *(["nodad"] if ":" in own else []))
        yield host
    finally:
        host.delete()


def test_pods_with_one_address_in_two_networks_reach_the_outside_by_routes_of_their_nads(
    node: DatapathNode, outside: Netns
) -> None:
    networks = (_with_ways_out("red", {_SNAT: "true"}), _with_ways_out("green", {_SNAT: "true"}))
    write(node.manager.manifests / "networks.yaml", *networks)
    with node.attached("a", networks=_wanting("red")) as red, node.attached("b", networks=_wanting("green")) as green:
        for pod in (red, green):
            assert pod.addresses == POD
            for own, target, seen in zip(POD, OUTSIDE, NODE, strict=True):
                assert reaches(pod.namespace, target, source=own)
                assert _seen_by(outside, target, pod.namespace, own) == seen


def test_a_pod_without_ways_out_reaches_neither_outside_nor_node(node: DatapathNode, outside: Netns) -> None:
    assert outside.links() == ["eth0"]
    write(node.manager.manifests / "networks.yaml", _with_ways_out("red", {}))
    with node.attached("a", networks=_wanting("red")) as pod:
        for own, *targets in zip(POD, OUTSIDE, NODE, strict=True):
            assert [each for each in targets if reaches(pod.namespace, each, source=own, timeout=1)] == []


def test_with_forwarding_the_outside_reaches_a_pod_by_its_own_address(node: DatapathNode, outside: Netns) -> None:
    write(node.manager.manifests / "networks.yaml", _with_ways_out("red", {_FORWARDING: "true"}))
    for subnet, gateway in zip(SUBNETS, NODE, strict=True):
        outside.ip("route", "add", subnet, "via", gateway)
    with node.attached("a", networks=_wanting("red")) as pod:
        for own, target in zip(POD, OUTSIDE, strict=True):
            assert reaches(outside, own)
            assert _seen_by(outside, target, pod.namespace, own) == own


def _with_ways_out(name: str, annotations: Mapping[str, str]) -> Document:
    """A network whose pods reach what is outside by its gateways."""
    found: dict[str, Any] = dict(nad(name, cidr=", ".join(SUBNETS), **annotations))
    routes = [
        {"dst": f"{address}/{length}", "gw": gateway}
        for address, length, gateway in zip(("192.0.2.0", "2001:db8::"), _LENGTHS, GATEWAYS, strict=True)
    ]
    found["spec"] = {"config": json.dumps({"cniVersion": "1.0.0", "type": "contrail-k8s-cni", "routes": routes})}
    return found


def _wanting(network: str) -> str:
    return json.dumps([{"name": network, "ips": list(POD)}])


def _seen_by(host: Netns, target: str, namespace: Netns, source: str) -> str:
    """The address from which a connection comes to a host that a pod makes from its address."""
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    with host.inside():
        listener = socket.create_server((target, 0), family=family)
    with listener:
        listener.settimeout(_TIMEOUT)
        with namespace.inside():
            connection = socket.create_connection(
                listener.getsockname()[:2], timeout=_TIMEOUT, source_address=(source, 0)
            )
        with connection:
            accepted, peer = listener.accept()
            accepted.close()
    return str(peer[0])


def _ip(*arguments: str) -> None:
    """Runs `ip` in the node's namespace, in which this thread is."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=10)
