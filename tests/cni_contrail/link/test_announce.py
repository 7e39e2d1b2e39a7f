"""Announcements of addresses to neighbours, captured at the host end."""

import socket
import time
from collections.abc import Iterator

import pytest

from cni_contrail.link.announce import announce
from cni_contrail.link.errors import KernelError
from cni_contrail.link.plan import Address, InterfacePlan
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan, interface_plan
from tests.support.kernel_state import link
from tests.support.netns import Netns

ARP, IPV6 = b"\x08\x06", b"\x86\xdd"
NEIGHBOUR_ADVERTISEMENT = 136
OVERRIDE = 0x20
SOLICITED = 0x40


class Wire:
    """Captures frames at the host end of an interface."""

    def __init__(self, node: Netns, name: str) -> None:
        with node.inside():
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self.socket.bind((name, 3))
        self.socket.settimeout(0.2)

    def notifications(self) -> list[bytes]:
        """Returns the captured frames."""
        frames = []
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                frames.append(self.socket.recv(2000))
            except TimeoutError:
                return frames
        return frames

    def arp(self) -> list[bytes]:
        return [frame for frame in self.notifications() if frame[12:14] == ARP]

    def advertisements(self) -> list[bytes]:
        return [
            frame for frame in self.notifications() if frame[12:14] == IPV6 and frame[54] == NEIGHBOUR_ADVERTISEMENT
        ]


@pytest.fixture
def wire(node: Netns, make: Make) -> Iterator[Wire]:
    """The wire of `eth1`, which has two addresses of each family, once it is silent."""
    make(PLAN)
    wire = Wire(node, PLAN.host_name)
    yield wire
    wire.socket.close()


PLAN: InterfacePlan = interface_plan(
    1,
    mac="02:00:5e:00:53:01",
    addresses=(Address("10.1.0.5", 24), Address("10.1.0.6", 24), Address("fd00:1::5", 64), Address("fd00:1::6", 128)),
)
MAC = bytes.fromhex("02005e005301")


def test_each_ipv4_address_is_announced_by_a_gratuitous_arp_request(wire: Wire, netns_fd: int) -> None:
    announce(netns_fd, [PLAN])
    frames = wire.arp()
    request = bytes.fromhex("0001 0800 06 04 0001")
    assert frames == [
        b"\xff" * 6 + MAC + ARP + request + MAC + address + bytes(6) + address
        for address in (bytes([10, 1, 0, 5]), bytes([10, 1, 0, 6]))
    ]


def test_each_ipv6_address_is_announced_by_an_advertisement_with_override(wire: Wire, netns_fd: int) -> None:
    announce(netns_fd, [PLAN])
    frames = wire.advertisements()
    by_address = {frame[62:78]: frame for frame in frames}
    for address in ("fd00:1::5", "fd00:1::6"):
        frame = by_address[socket.inet_pton(socket.AF_INET6, address)]
        assert frame[22:38] == socket.inet_pton(socket.AF_INET6, address), "sent from the address itself"
        assert frame[38:54] == socket.inet_pton(socket.AF_INET6, "ff02::1"), "to all nodes"
        assert frame[58] & OVERRIDE
        assert not frame[58] & SOLICITED
        assert frame[78:86] == b"\2\1" + MAC, "with the target's link-layer address"


def test_announcing_again_sends_again(wire: Wire, netns_fd: int) -> None:
    announce(netns_fd, [PLAN])
    announce(netns_fd, [PLAN])
    assert len(wire.arp()) == 4


def test_announcing_keeps_a_mac_that_a_later_plugin_has_set(wire: Wire, sandbox: Netns, netns_fd: int) -> None:
    """As `tuning` does, behind this plugin in a chain; the runtime calls it before ADD announces."""
    sandbox.ip("link", "set", "eth1", "address", "02:00:00:00:00:99")
    wire.notifications()  # the kernel's own announcement of the change
    announce(netns_fd, [PLAN])
    assert link(sandbox, "eth1")["address"] == "02:00:00:00:00:99"
    assert {frame[6:12].hex(":") for frame in wire.arp()} == {"02:00:00:00:00:99"}


def test_nothing_is_announced_before(wire: Wire) -> None:
    assert wire.arp() == []


def test_an_interface_without_addresses_announces_nothing(make: Make, node: Netns, netns_fd: int) -> None:
    make(bare_plan(2))
    wire = Wire(node, "tapplan2")
    announce(netns_fd, [bare_plan(2)])
    assert wire.arp() == []
    wire.socket.close()


def test_deleted_links_are_skipped(wire: Wire, netns_fd: int) -> None:
    announce(netns_fd, [interface_plan(7), PLAN, interface_plan(8)])
    assert len(wire.arp()) == 2


def test_any_other_kernel_error_is_raised(make: Make, netns_fd: int) -> None:
    make(bare_plan(2))
    with pytest.raises(KernelError, match=r"^name-of-16-chars: announce: "):
        announce(netns_fd, [bare_plan(2), bare_plan(2, name="name-of-16-chars")])
