"""Twenty networks with equal subnets, each with a pod on each of three nodes; pods have equal addresses and MACs.

Each pod is in one network. Its place in it decides about MAC and addresses, and places go round the nodes from network
to network. The pod at the last place has addresses that are nowhere else, so that pods of other networks can ask for
it.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.node import Node
from tests.support.forged_frames import Sender, Surroundings
from tests.support.netns import Netns

NETWORKS = 20
CIDRS = "10.7.0.0/16,fd07::/64"
AROUND = Surroundings(gateways=("10.7.0.1", "fd07::1"), free=("10.7.0.66", "fd07::66"))
_PLACES = 3
_CONCURRENT = 8


class EqualPod(NamedTuple):
    """A pod with the interface `eth1` in a network (from 0), and `index_0`, its addresses in the pod network."""

    name: str
    node: Node
    sandbox: Netns
    network: int
    place: int
    sender: Sender
    index_0: tuple[str, ...] = ()

    @property
    def addresses(self) -> set[str]:
        """Its addresses in the network."""
        return {self.sender.ipv4, self.sender.ipv6}

    @property
    def is_unique(self) -> bool:
        """Whether its addresses are nowhere else."""
        return self.place == _PLACES - 1


@contextmanager
def equal_networks(cluster: Cluster) -> Iterator[list[EqualPod]]:
    """Creates the networks, and attaches all pods."""
    for network in range(NETWORKS):
        cluster.add_nad(_name(network), cidr=CIDRS)
    with ExitStack() as stack:
        pods = [_pod(cluster, network, place) for network in range(NETWORKS) for place in range(_PLACES)]
        for pod in pods:
            stack.callback(pod.sandbox.delete)
        with ThreadPoolExecutor(_CONCURRENT) as threads:
            answers = list(threads.map(lambda pod: _attach(cluster, pod), pods))
        assert all("interfaces" in answer for answer in answers), answers
        found = cluster.interfaces()
        yield [pod._replace(index_0=_addresses(found[pod.name][0])) for pod in pods]


def _pod(cluster: Cluster, network: int, place: int) -> EqualPod:
    node = cluster.nodes[(network + place) % len(cluster.nodes)]
    return EqualPod(f"pod-{network:02}-{place}", node, Netns("pod"), network, place, _sender(network, place))


def _attach(cluster: Cluster, pod: EqualPod) -> Any:
    wanted = [{"name": _name(pod.network), "mac": pod.sender.mac, "ips": [pod.sender.ipv4, pod.sender.ipv6]}]
    cluster.add_pod(pod.name, pod.node, networks=json.dumps(wanted))
    return pod.node.add(pod.name, pod.sandbox)


def _name(network: int) -> str:
    return f"equal-{network:02}"


def _sender(network: int, place: int) -> Sender:
    mac = f"02:00:00:00:00:1{place}"
    if place == _PLACES - 1:
        return Sender(mac, f"10.7.9.{network + 1}", f"fd07::9:{network + 1:x}")
    return Sender(mac, f"10.7.0.1{place}", f"fd07::1{place}")


def _addresses(interface: dict[str, list[dict[str, str]]]) -> tuple[str, ...]:
    return tuple(each["address"] for each in interface["addresses"])
