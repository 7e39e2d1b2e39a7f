"""Networks with the forwarding mode l3 on three nodes: nodes have a route for each block, pods one by the gateway."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.fabric_capture import tunnelled
from tests.e2e.across_nodes.node import Node
from tests.support.echo_many import answering
from tests.support.netns import Netns
from tests.support.network_capture import NetworkCapture

_NETWORKS = ("blue", "red")
_CIDRS = "10.8.0.0/16,fd08::/64"
_PLACES = (0, 0, 1, 2)  # nodes of the pods of each network: two on the first
_WISHED = "10.8.0.5{}", "fd08::3{}"  # in the blocks of the first node
_WISHES = {each.format(number) for each in _WISHED for number in (1, 2)}


class Pod(NamedTuple):
    """An attached pod with the interface `eth1` in a network."""

    network: str
    node: Node
    sandbox: Netns
    addresses: frozenset[str]


@pytest.fixture(scope="module")
def pods(cluster: Cluster) -> Iterator[list[Pod]]:
    """Pods of both networks, which have equal subnets; the last pod of each has addresses that it asked for."""
    for network in _NETWORKS:
        cluster.add_nad(network, cidr=_CIDRS, **{"opencontrail.org/forwarding-mode": "l3"})
    with ExitStack() as stack:
        found = []
        for number, network in enumerate(_NETWORKS, start=1):
            for position, place in enumerate(_PLACES):
                wished = {"ips": [each.format(number) for each in _WISHED]} if position == len(_PLACES) - 1 else {}
                name, node, sandbox = f"{network}-{position}", cluster.nodes[place], Netns("pod")
                stack.callback(sandbox.delete)
                cluster.add_pod(name, node, networks=json.dumps([{"name": network, **wished}]))
                answer = node.add(name, sandbox)
                assert "interfaces" in answer, answer
                stack.callback(node.delete, name, sandbox)
                found.append((network, name, node, sandbox))
        interfaces = cluster.interfaces()
        yield [
            Pod(network, node, sandbox, frozenset(each["address"] for each in interfaces[name][1]["addresses"]))
            for network, name, node, sandbox in found
        ]


def test_pods_reach_all_of_their_network_on_all_nodes_and_no_other(cluster: Cluster, pods: list[Pod]) -> None:
    others = [_of_network(pods, pod.network) - pod.addresses for pod in pods]
    foreign = [_of_network(pods, *_NETWORKS) - _of_network(pods, pod.network) for pod in pods]
    assert all(foreign)
    capture = NetworkCapture(cluster.fabric.path)
    try:
        with ThreadPoolExecutor(len(pods)) as threads:
            wanted = [own | other for own, other in zip(others, foreign, strict=True)]
            answers = list(threads.map(answering, (pod.sandbox for pod in pods), wanted))
        found = list(tunnelled(capture.frames()))
    finally:
        capture.close()
    assert answers == [set(each) for each in others]
    assert len({each.vni for each in found}) == len(_NETWORKS)
    assert [each.frame.hex() for each in found if each.is_flooded] == []


def test_slices_list_blocks_and_borrowed_addresses_instead_of_endpoints(cluster: Cluster, pods: list[Pod]) -> None:
    specs = [item["spec"] for node in cluster.nodes for item in cluster.slices(node)]
    routed = [spec for spec in specs if spec["network"][-1].removesuffix("-pod-network").endswith(_NETWORKS)]
    assert len(routed) == len(_NETWORKS) * len(cluster.nodes)
    assert not any(spec.get("endpoints") for spec in routed)
    assert all(spec.get("blocks") or spec.get("borrowed") for spec in routed)
    assert {each for spec in routed for each in spec.get("borrowed", ())} == _WISHES


def _of_network(pods: list[Pod], *networks: str) -> frozenset[str]:
    return frozenset(address for pod in pods if pod.network in networks for address in pod.addresses)
