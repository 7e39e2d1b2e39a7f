"""The host end has no address and no route, sends nothing, and ignores router advertisements."""

import socket
import struct
import time

from cni_contrail.link.plan import Address
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan, interface_plan
from tests.support.kernel_state import addresses, link_local, read_sysctl, write_sysctl
from tests.support.netns import Netns

ALL_NODES_MAC = bytes.fromhex("333300000001")


def test_the_host_end_has_no_address_not_even_a_link_local_one(make: Make, node: Netns) -> None:
    make(interface_plan(), bare_plan(1, addresses=(Address("10.1.0.5", 24),)))
    for name in ("tapplan0", "tapplan1"):
        assert addresses(node, name) == []
        assert link_local(node, name) == []


def test_the_route_table_of_the_node_is_untouched(make: Make, node: Netns) -> None:
    before = node.ip("-4", "route"), node.ip("-6", "route")
    make(interface_plan(), interface_plan(1))
    assert (node.ip("-4", "route"), node.ip("-6", "route")) == before


def test_a_datapath_can_still_add_ipv6_addresses_to_the_host_end(make: Make, node: Netns) -> None:
    """After it has enabled IPv6; the kernel adds no link-local address."""
    make(interface_plan())
    write_sysctl(node, "net/ipv6/conf/tapplan0/disable_ipv6", "0")
    node.ip("addr", "add", "fd77::1/64", "dev", "tapplan0", "nodad")
    assert [each["local"] for each in addresses(node, "tapplan0")] == ["fd77::1"]
    assert link_local(node, "tapplan0") == []


def test_router_advertisements_of_a_pod_add_no_route_or_address_to_the_node(
    make: Make, node: Netns, sandbox: Netns
) -> None:
    """CVE-2020-10749, even where an administrator enables IPv6 on all links."""
    make(interface_plan())
    write_sysctl(node, "net/ipv6/conf/all/disable_ipv6", "0")
    assert read_sysctl(node, "net/ipv6/conf/tapplan0/disable_ipv6") == "0"
    with sandbox.inside(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as wire:
        wire.bind(("eth0", 0))
        wire.send(ALL_NODES_MAC + bytes.fromhex("02005e100000") + b"\x86\xdd" + router_advertisement())
    await_icmp(node)
    assert node.ip("-6", "route", "show", "default") == ""
    assert addresses(node, "tapplan0") == []


def await_icmp(node: Netns) -> None:
    """Waits until the advertisement has arrived; otherwise the test would prove nothing."""
    deadline = time.monotonic() + 5
    while received_icmp(node) == 0:
        assert time.monotonic() < deadline, "nothing has arrived"


def received_icmp(node: Netns) -> int:
    """Returns how many ICMPv6 messages the node's namespace has received."""
    lines: list[str] = node.run("cat", "/proc/net/snmp6").stdout.splitlines()
    (count,) = [line.split()[1] for line in lines if line.startswith("Icmp6InMsgs")]
    return int(count)


def router_advertisement() -> bytes:
    """A router that lives half an hour and has the prefix 2001:db8:bad::/64 for all hosts."""
    source, destination = (socket.inet_pton(socket.AF_INET6, each) for each in ("fe80::5eff:fe10:0", "ff02::1"))
    prefix = struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 86400, 14400, 0)
    prefix += socket.inet_pton(socket.AF_INET6, "2001:db8:bad::")
    body = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + prefix
    pseudo = source + destination + struct.pack("!II", len(body), socket.IPPROTO_ICMPV6)
    body = body[:2] + struct.pack("!H", checksum(pseudo + body)) + body[4:]
    return struct.pack("!IHBB", 6 << 28, len(body), socket.IPPROTO_ICMPV6, 255) + source + destination + body


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
