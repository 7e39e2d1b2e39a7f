"""Twenty networks with equal subnets on one node; their pods have equal addresses and equal MACs.

Each pod is in three networks, and each network has three pods. Subnets and MACs of all networks are equal. Addresses
are equal in the five networks of a class: a pod is in networks of three of the four classes, as a host must not have
the address of another one that it talks to. The third pod of each network has an address that is nowhere else, so
that somebody can ask for it from other networks of the class.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from cni_contrail.runtime.attachment import Attachment
from contrailctl.endpoint import Endpoint
from contrailctl.manager import ManagerApi
from demo.container_runtime import PodSandbox
from tests.e2e.isolation.conftest import end_of
from tests.support.datapath_node import DatapathNode, datapath_node
from tests.support.forged_frames import Sender, Surroundings
from tests.support.manifests import Document, nad, pod, write
from tests.support.netns import Netns

NETWORKS = 20
CIDRS = "10.7.0.0/16, fd07::/64"
AROUND = Surroundings(gateways=("10.7.0.1", "fd07::1"), free=("10.7.0.66", "fd07::66"))
POD_SUBNETS = ("10.32.0.0/16", "fd00:32::/64")
_IN_A_CLASS = 5
_OF_A_POD = 3
_CONCURRENT = 8


class Interface(NamedTuple):
    """An interface of a pod: its network, from 0, its place among the network's pods, and the name of its host end."""

    pod: int
    namespace: Netns
    link: str
    network: int
    place: int
    port: str
    sender: Sender


class EqualNetworks(NamedTuple):
    """The running node, its pods, and their interfaces in the networks; `vnis` are the networks' numbers, in order.

    `sandboxes` and `index_0_ports` are the namespaces of the pods, and their host ends at index 0, in their order.
    """

    node: DatapathNode
    pods: list[PodSandbox]
    sandboxes: list[Netns]
    index_0_ports: list[str]
    interfaces: list[Interface]
    vnis: list[int]

    def of(self, network: int) -> list[Interface]:
        """The interfaces of a network, by place."""
        return sorted((each for each in self.interfaces if each.network == network), key=lambda each: each.place)


@contextmanager
def equal_networks() -> Iterator[EqualNetworks]:
    """Starts the node and attaches all pods."""
    with ExitStack() as stack:
        node = stack.enter_context(datapath_node({"pod-network": {"subnets": list(POD_SUBNETS)}}))
        networks = (nad(_name(number), cidr=CIDRS) for number in range(NETWORKS))
        write(node.manager.manifests / "equal.yaml", *networks, *(_manifest(number) for number in range(NETWORKS)))
        sandboxes = []
        for _ in range(NETWORKS):
            sandboxes.append(Netns("pod"))
            stack.callback(sandboxes[-1].delete)
        with ThreadPoolExecutor(_CONCURRENT) as threads:
            names = [f"pod-{number:02}" for number in range(NETWORKS)]
            list(threads.map(node.attach, names, sandboxes))
        views = {view.name: view for view in ManagerApi(Endpoint(f"http://{node.manager.listen}", 10)).pods()}
        pods = [
            PodSandbox(views[name], name, Attachment("c" * 64, sandbox.path, "eth0"))
            for name, sandbox in zip(names, sandboxes, strict=True)
        ]
        ports = [_host_ends(node, pod) for pod in pods]
        interfaces = [
            _interface(number, place, sandbox, host_ends[place + 1])
            for number, (sandbox, host_ends) in enumerate(zip(sandboxes, ports, strict=True))
            for place in range(_OF_A_POD)
        ]
        vnis = [_vni(pods[number]) for number in range(NETWORKS)]
        yield EqualNetworks(node, pods, sandboxes, [host_ends[0] for host_ends in ports], interfaces, vnis)
        end_of(node)


def _name(network: int) -> str:
    return f"equal-{network:02}"


def _network(number: int, place: int) -> int:
    """The network of a pod's interface at a place: in the next class for each place."""
    return (number + place * (_IN_A_CLASS + 1)) % NETWORKS


def _manifest(number: int) -> Document:
    senders = ((_network(number, place), _sender(number, place)) for place in range(_OF_A_POD))
    wanted = [{"name": _name(network), "mac": each.mac, "ips": [each.ipv4, each.ipv6]} for network, each in senders]
    return pod(f"pod-{number:02}", networks=json.dumps(wanted))


def _interface(number: int, place: int, sandbox: Netns, port: str) -> Interface:
    network = _network(number, place)
    return Interface(number, sandbox, f"eth{place + 1}", network, place, port, _sender(number, place))


def _sender(number: int, place: int) -> Sender:
    mac = f"02:00:00:00:00:1{place}"
    network = _network(number, place)
    if place == _OF_A_POD - 1:
        return Sender(mac, f"10.7.9.{network + 1}", f"fd07::9:{network + 1:x}")
    group = network // _IN_A_CLASS
    return Sender(mac, f"10.7.{group}.1{place}", f"fd07::{group}:1{place}")


def _host_ends(node: DatapathNode, sandbox: PodSandbox) -> list[str]:
    """Host ends of a pod's interfaces in index order, as the agent knows them."""
    assert sandbox.pod.machine is not None
    found = {each["id"]: each["system-name"] for each in node.manager.get(f"/vm/{sandbox.pod.machine.uuid}")}
    return [found[interface.uuid] for interface in sandbox.pod.machine.interfaces]


def _vni(sandbox: PodSandbox) -> int:
    """The number of the network of a pod's first interface beside index 0, which is the network of the pod's number."""
    assert sandbox.pod.machine is not None
    return sandbox.pod.machine.interfaces[1].vni
