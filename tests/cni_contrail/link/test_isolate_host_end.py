"""The host end is no way around the network: a pod reaches neither its node nor what its node forwards to."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator

import pytest

from cni_contrail.link.isolate import isolate_host_ends
from cni_contrail.link.plan import Address, Route
from tests.cni_contrail.conftest import until
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan
from tests.support.kernel_state import link, read_sysctl, write_sysctl
from tests.support.netns import Netns

PLAN = bare_plan(
    addresses=(Address("10.0.0.5", 24), Address("fd00::5", 64)),
    routes=(Route("192.0.2.0/24", "10.0.0.1"), Route("2001:db8::/32", "fd00::1")),
)
NODE = ("192.0.2.1", "2001:db8::1")
NEIGHBOUR = ("192.0.2.2", "2001:db8::2")
PORT = 5353
OPEN = {
    "net/ipv4/conf/tapplan0/rp_filter": "0",
    "net/ipv4/conf/tapplan0/arp_ignore": "0",
    "net/ipv4/conf/tapplan0/forwarding": "1",
    "net/ipv6/conf/tapplan0/disable_ipv6": "0",
}
"""What links of earlier versions have on a node that forwards."""
CLOSED = {
    "net/ipv4/conf/tapplan0/rp_filter": "1",
    "net/ipv4/conf/tapplan0/arp_ignore": "8",
    "net/ipv4/conf/tapplan0/forwarding": "0",
    "net/ipv6/conf/tapplan0/disable_ipv6": "1",
    "net/ipv6/conf/tapplan0/accept_ra": "0",
}


@pytest.fixture
def neighbour(node: Netns, make_netns: Callable[[str], Netns]) -> Netns:
    """A machine in the node's network; the node forwards, and filters nothing by itself."""
    machine = make_netns("lan")
    for key in ("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"):
        write_sysctl(node, key, "1")
    for which in ("all", "default"):
        write_sysctl(node, f"net/ipv4/conf/{which}/rp_filter", "0")
    node.ip("link", "add", "lan", "type", "veth", "peer", "name", "eth0", "netns", machine.name)
    for netns, name, addresses in ((node, "lan", NODE), (machine, "eth0", NEIGHBOUR)):
        netns.ip("link", "set", name, "up")
        netns.ip("addr", "add", f"{addresses[0]}/24", "dev", name)
        netns.ip("addr", "add", f"{addresses[1]}/64", "dev", name, "nodad")
    for address in NEIGHBOUR:  # not resolved: a request could be lost, and a datagram with it
        node.ip(
            "neigh", "replace", address, "lladdr", link(machine, "eth0")["address"], "dev", "lan", "nud", "permanent"
        )
    return machine


class Pod:
    """Sends to the node's MAC, which a pod can learn or guess, and sees what comes to a socket."""

    def __init__(self, sandbox: Netns, node: Netns, neighbour: Netns) -> None:
        self._sandbox, self._node, self._neighbour = sandbox, node, neighbour
        mac = link(node, "tapplan0")["address"]
        for gateway in ("10.0.0.1", "fd00::1"):
            sandbox.ip("neigh", "replace", gateway, "lladdr", mac, "dev", "eth0", "nud", "permanent")

    def reaches(self, address: str) -> bool:
        """Returns whether a datagram to the address arrives; one that is dropped is seen by the node's counters."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        target = self._node if address in NODE else self._neighbour
        with self._bound(target, family) as receiver, self._sandbox.inside():
            before = self._dropped()
            with socket.socket(family, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"hello", (address, PORT))
            until(lambda: received(receiver) or self._dropped() > before)
            return received(receiver)

    def resolves(self, address: str) -> bool:
        """Returns whether the node answers an ARP request for the address."""
        request = bytes.fromhex("0001 0800 06 04 0001 02005e100000") + socket.inet_aton("10.0.0.5") + bytes(6)
        with self._sandbox.inside(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806)) as wire:
            wire.bind(("eth0", 0x0806))
            wire.send(b"\xff" * 6 + bytes.fromhex("02005e100000 0806") + request + socket.inet_aton(address))
            self.reaches(NODE[0])  # sent behind the request and processed by the same queue
            return received(wire)

    @contextlib.contextmanager
    def _bound(self, netns: Netns, family: int) -> Iterator[socket.socket]:
        with netns.inside():
            receiver = socket.socket(family, socket.SOCK_DGRAM)
        with receiver:
            receiver.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", PORT))
            yield receiver

    def _dropped(self) -> int:
        """Datagrams that the node has dropped: by the reverse path, for lack of forwarding, or without IPv6.

        Linux 6.12 and earlier count those that they do not forward as address errors.
        """
        files = self._node.run("cat", "/proc/net/netstat", "/proc/net/snmp", "/proc/net/snmp6").stdout.splitlines()
        counters = dict(line.split() for line in files if line.startswith("Ip6"))
        for group in ("TcpExt:", "Ip:"):
            names, values = (line.split() for line in files if line.startswith(group))
            counters.update(zip(names, values, strict=True))
        return sum(int(counters[name]) for name in ("IPReversePathFilter", "InAddrErrors", "Ip6InDiscards"))


def received(receiver: socket.socket) -> bool:
    try:
        return bool(receiver.recv(100, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False


@pytest.fixture
def pod(make: Make, sandbox: Netns, node: Netns, neighbour: Netns) -> Iterator[Pod]:
    """The pod with its interface, on one processor: frames are then processed in the order in which they are sent."""
    make(PLAN)
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    yield Pod(sandbox, node, neighbour)
    os.sched_setaffinity(0, processors)


def open_host_end(node: Netns) -> None:
    """As an earlier version left it."""
    for key, value in OPEN.items():
        write_sysctl(node, key, value)


@pytest.mark.parametrize("address", [*NODE, *NEIGHBOUR])
def test_a_pod_reaches_neither_the_node_nor_its_network(pod: Pod, address: str) -> None:
    assert not pod.reaches(address)


@pytest.mark.parametrize("address", [*NODE, *NEIGHBOUR])
def test_a_host_end_of_an_earlier_version_is_closed(pod: Pod, node: Netns, address: str) -> None:
    open_host_end(node)
    assert pod.reaches(address), "otherwise the tests prove nothing"
    with node.inside():
        isolate_host_ends([PLAN], sysctl_dir="/proc/sys")
    assert not pod.reaches(address)


def test_the_node_answers_no_arp_request(pod: Pod, node: Netns) -> None:
    assert not pod.resolves(NODE[0])
    open_host_end(node)
    assert pod.resolves(NODE[0]), "otherwise the test proves nothing"


def test_loose_reverse_path_filtering_of_the_node_suffices(pod: Pod, node: Netns) -> None:
    """As systemd sets it, also for new links."""
    write_sysctl(node, "net/ipv4/conf/all/rp_filter", "2")
    write_sysctl(node, "net/ipv4/conf/tapplan0/rp_filter", "2")
    assert not pod.reaches(NODE[0])


def test_forwarding_that_the_node_turns_on_later_opens_nothing(pod: Pod, node: Netns) -> None:
    """It turns on forwarding of every link."""
    write_sysctl(node, "net/ipv4/ip_forward", "0")
    write_sysctl(node, "net/ipv4/ip_forward", "1")
    assert not pod.reaches(NEIGHBOUR[0])


@pytest.mark.parametrize(("key", "value"), CLOSED.items())
def test_host_end_settings(make: Make, node: Netns, key: str, value: str) -> None:
    make(PLAN)
    assert read_sysctl(node, key) == value


def test_only_links_with_our_alias_are_isolated(make: Make, node: Netns) -> None:
    make(PLAN)
    open_host_end(node)
    node.ip("link", "set", "tapplan0", "alias", "somebody's")
    with node.inside():
        isolate_host_ends([PLAN, bare_plan(7)], sysctl_dir="/proc/sys")
    assert {key: read_sysctl(node, key) for key in OPEN} == OPEN
