"""Property: pyroute2 decodes from our messages exactly the plan that we encoded."""

import ipaddress
import socket
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as some
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from cni_contrail.link import links, message, routes
from cni_contrail.link.addresses import add_address
from cni_contrail.link.links import LinkRef
from cni_contrail.link.plan import Address, DefaultRoute, Route
from cni_contrail.link.routes import DefaultRouteEntry
from tests.support.interface_plans import interface_plan
from tests.support.netlink_messages import (
    ACKNOWLEDGE,
    EXCLUSIVELY,
    REQUEST,
    UP,
    aliases,
    decoded,
    ends,
    indexes,
    link_fields,
    macs,
    names,
)

APPENDING = REQUEST | ACKNOWLEDGE | 0x400 | 0x800
MULTIPATH = 9

ipv4 = some.ip_addresses(v=4)
ipv6 = some.ip_addresses(v=6)
ips = ipv4 | ipv6


@some.composite
def addresses(draw: some.DrawFn) -> Address:
    ip = draw(ips)
    return Address(str(ip), draw(some.integers(0, ip.max_prefixlen)), draw(some.integers(0, (1 << 32) - 1)))


@some.composite
def networks(draw: some.DrawFn) -> Any:
    ip = draw(ips)
    return ipaddress.ip_network((ip, draw(some.integers(0, ip.max_prefixlen))), strict=False)


@given(names, names, macs, some.integers(0, (1 << 32) - 1), some.integers(0, (1 << 31) - 1))
def test_a_veth_pair_is_encoded_as_planned(name: str, host_name: str, mac: str, mtu: int, netns_fd: int) -> None:
    plan = interface_plan(name=name, host_name=host_name, mac=mac, mtu=mtu)
    fields, attributes = decoded(links.create_pair(plan, netns_fd), ifinfmsg)
    assert fields == link_fields(type_=16, flags_=EXCLUSIVELY)
    host_mac = attributes.pop("IFLA_ADDRESS")
    assert int(host_mac[:2], 16) == 2, "locally administered, unicast"
    sizes = {"IFLA_MTU": mtu, "IFLA_NUM_TX_QUEUES": 1, "IFLA_NUM_RX_QUEUES": 1}
    peer = {"IFLA_IFNAME": name, "IFLA_ADDRESS": mac, **sizes, "IFLA_NET_NS_FD": netns_fd}
    assert attributes == {
        "IFLA_IFNAME": host_name,
        **sizes,
        "IFLA_LINKINFO": {"IFLA_INFO_KIND": "veth", "IFLA_INFO_DATA": {"VETH_INFO_PEER": peer}},
    }


@given(names, aliases, some.booleans())
def test_a_host_end_is_encoded_as_planned(host_name: str, alias: str, ipv6: bool) -> None:
    plan = interface_plan(host_name=host_name, alias=alias)
    fields, attributes = decoded(links.set_host_end(plan, ipv6=ipv6), ifinfmsg)
    assert fields == link_fields(type_=19, flags_=REQUEST | ACKNOWLEDGE, flags=UP, change=UP)
    settings = attributes.pop("IFLA_AF_SPEC")
    assert ("AF_INET6", {"IFLA_INET6_ADDR_GEN_MODE": 1}) in settings.items() if ipv6 else "AF_INET6" not in settings
    assert attributes == {"IFLA_IFNAME": host_name, "IFLA_IFALIAS": alias}


@given(ends)
def test_a_sandbox_end_is_encoded_as_planned(end: LinkRef) -> None:
    fields, attributes = decoded(links.set_sandbox_end(end), ifinfmsg)
    assert fields == link_fields(type_=19, flags_=REQUEST | ACKNOWLEDGE, index=end.ifindex, flags=UP, change=UP)
    assert list(attributes) == ["IFLA_AF_SPEC"]  # pyroute2 does not decode the IPv4 settings


@given(names)
def test_an_announcement_is_encoded_as_planned(name: str) -> None:
    fields, attributes = decoded(links.set_broadcast_address(interface_plan(name=name)), ifinfmsg)
    assert fields == link_fields(type_=19, flags_=REQUEST | ACKNOWLEDGE)
    assert attributes == {"IFLA_IFNAME": name, "IFLA_BROADCAST": "ff:ff:ff:ff:ff:ff"}


@given(ends)
def test_a_link_deletion_is_encoded_by_index(end: LinkRef) -> None:
    fields, attributes = decoded(links.delete(end), ifinfmsg)
    assert fields == link_fields(type_=17, flags_=REQUEST | ACKNOWLEDGE, index=end.ifindex)
    assert attributes == {}


@given(names)
def test_a_link_query_is_encoded_by_name(name: str) -> None:
    fields, attributes = decoded(links.get(name), ifinfmsg)
    assert fields == link_fields(type_=18, flags_=REQUEST | ACKNOWLEDGE)
    assert attributes == {"IFLA_IFNAME": name, "IFLA_EXT_MASK": 8}


def test_a_link_dump_is_encoded() -> None:
    fields, attributes = decoded(links.dump(), ifinfmsg)
    assert fields == link_fields(type_=18, flags_=REQUEST | ACKNOWLEDGE | 0x300)
    assert attributes == {"IFLA_EXT_MASK": 8}


@given(ends, some.integers(0, (1 << 31) - 1))
def test_a_link_group_and_its_deletion_are_encoded(end: LinkRef, group: int) -> None:
    fields, attributes = decoded(links.set_group(end, group), ifinfmsg)
    assert fields == link_fields(type_=19, flags_=REQUEST | ACKNOWLEDGE, index=end.ifindex)
    assert attributes == {"IFLA_GROUP": group}
    fields, attributes = decoded(links.delete_group(group), ifinfmsg)
    assert fields == link_fields(type_=17, flags_=REQUEST | ACKNOWLEDGE)
    assert attributes == {"IFLA_GROUP": group}


@given(ends, addresses())
def test_an_address_is_encoded_as_planned(end: LinkRef, address: Address) -> None:
    fields, attributes = decoded(add_address(end, address), ifaddrmsg)
    interface = ipaddress.ip_interface(f"{address.address}/{address.prefix_length}")
    is_ipv6 = interface.version == 6
    assert fields == {
        "family": socket.AF_INET6 if is_ipv6 else socket.AF_INET,
        "prefixlen": address.prefix_length,
        "flags": 0x02 if is_ipv6 else 0,
        "scope": 0,
        "index": end.ifindex,
        "type_": 20,
        "flags_": EXCLUSIVELY,
    }
    assert attributes.pop("IFA_RT_PRIORITY", 0) == address.metric
    broadcast = attributes.pop("IFA_BROADCAST", None)
    has_broadcast = not is_ipv6 and address.prefix_length < 31
    assert broadcast == (str(interface.network.broadcast_address) if has_broadcast else None)
    assert {name: ipaddress.ip_address(value) for name, value in attributes.items()} == {
        "IFA_LOCAL": interface.ip,
        "IFA_ADDRESS": interface.ip,
    }


def route_fields(version: int, **changes: int) -> dict[str, int]:
    common = {"src_len": 0, "tos": 0, "table": 254, "proto": 4, "type": 1, "dst_len": 0, "scope": 0, "flags": 0}
    return {"family": socket.AF_INET6 if version == 6 else socket.AF_INET, **common, **changes}


def is_beyond(gateway: Any, own: tuple[Address, ...]) -> bool:
    subnets = [ipaddress.ip_interface(f"{each.address}/{each.prefix_length}").network for each in own]
    link_local = gateway.version == 6 and gateway in ipaddress.ip_network("fe80::/10")
    return not link_local and not any(gateway in subnet for subnet in subnets)


def hop(family: int, ifindex: int, gateway: Any, metric: int) -> dict[str, Any]:
    """The attributes of a next hop, as pyroute2 decodes them."""
    attributes: dict[str, Any] = {"RTA_OIF": ifindex}
    if metric:
        attributes["RTA_PRIORITY"] = metric
    if gateway is not None and (gateway.version == 6) == (family == socket.AF_INET6):
        attributes["RTA_GATEWAY"] = gateway
    elif gateway is not None:
        of = socket.AF_INET6 if gateway.version == 6 else socket.AF_INET
        attributes["RTA_VIA"] = {"family": of, "addr": gateway}
    return attributes


def with_ips(attributes: dict[str, Any]) -> dict[str, Any]:
    """The same with address objects, since one address has several text forms."""
    read: dict[str, Any] = {
        name: ipaddress.ip_address(value) if name in ("RTA_DST", "RTA_GATEWAY") else value
        for name, value in attributes.items()
    }
    if "RTA_VIA" in read:
        read["RTA_VIA"] = {**read["RTA_VIA"], "addr": ipaddress.ip_address(read["RTA_VIA"]["addr"])}
    return read


@given(ends, networks(), some.none() | ips, some.lists(addresses(), max_size=3).map(tuple))
def test_a_route_is_encoded_as_planned(end: LinkRef, network: Any, gateway: Any, own: tuple[Address, ...]) -> None:
    end = end._replace(ifindex=end.ifindex >> 1)  # the metric of IPv6 is the index and more, in 32 bits
    route = Route(str(network), None if gateway is None else str(gateway))
    fields, attributes = decoded(routes.add_route(end, route, own), rtmsg)
    beyond = gateway is not None and is_beyond(gateway, own)
    assert fields == route_fields(
        network.version,
        dst_len=network.prefixlen,
        scope=253 if gateway is None and network.version == 4 else 0,
        flags=4 if beyond else 0,
        type_=24,
        flags_=APPENDING,
    )
    metric = 1024 + end.ifindex if network.version == 6 else 0
    assert with_ips(attributes) == {
        "RTA_DST": network.network_address,
        **hop(fields["family"], end.ifindex, gateway, metric),
    }


@given(ends, ips, some.lists(addresses(), max_size=3).map(tuple), some.booleans())
def test_a_default_route_is_encoded_as_planned(
    end: LinkRef, gateway: Any, own: tuple[Address, ...], asked: bool
) -> None:
    fields, attributes = decoded(routes.add_default_route(end, DefaultRoute(str(gateway), asked), own), rtmsg)
    flags = 4 if is_beyond(gateway, own) else 0
    assert fields == route_fields(gateway.version, flags=flags, type_=24, flags_=EXCLUSIVELY)
    metric = 1024 if gateway.version == 6 else 0
    assert with_ips(attributes) == hop(fields["family"], end.ifindex, gateway, metric)


@some.composite
def parse_default_routes(draw: some.DrawFn) -> DefaultRouteEntry:
    family = draw(some.sampled_from([socket.AF_INET, socket.AF_INET6]))
    gateway = draw(some.none() | (ips if family == socket.AF_INET else ipv6))
    metric = draw(some.integers(1 if family == socket.AF_INET6 else 0, (1 << 32) - 1))
    onlink = gateway is not None and draw(some.booleans())
    return DefaultRouteEntry(family, draw(indexes), None if gateway is None else as_read(gateway), metric, onlink)


def as_read(ip: Any) -> str:
    """The address as the C library formats it, which may differ from Python's format."""
    return socket.inet_ntop(socket.AF_INET6 if ip.version == 6 else socket.AF_INET, ip.packed)


@given(parse_default_routes())
def test_a_restored_default_route_is_encoded_as_it_was(route: DefaultRouteEntry) -> None:
    fields, attributes = decoded(routes.restore_default_route(route), rtmsg)
    on_link = route.gateway is None and route.family == socket.AF_INET
    assert fields == route_fields(
        6 if route.family == socket.AF_INET6 else 4,
        scope=253 if on_link else 0,
        flags=4 if route.onlink else 0,
        type_=24,
        flags_=APPENDING,
    )
    gateway = None if route.gateway is None else ipaddress.ip_address(route.gateway)
    assert with_ips(attributes) == hop(route.family, route.ifindex, gateway, route.metric)


@given(parse_default_routes())
def test_a_default_route_deletion_is_encoded(route: DefaultRouteEntry) -> None:
    fields, attributes = decoded(routes.delete_default_route(route), rtmsg)
    version = 6 if route.family == socket.AF_INET6 else 4
    assert fields == route_fields(version, proto=0, scope=255, type_=25, flags_=REQUEST | ACKNOWLEDGE)
    gateway = None if route.gateway is None else ipaddress.ip_address(route.gateway)
    assert with_ips(attributes) == hop(route.family, route.ifindex, gateway, route.metric)


@given(parse_default_routes())
def test_a_restored_default_route_is_parsed_as_it_was(route: DefaultRouteEntry) -> None:
    assert list(routes.parse_default_routes(routes.restore_default_route(route).body)) == [route]


@given(ends, addresses(), some.integers(1, 20))
def test_a_datagram_numbers_its_messages_and_acknowledges_the_last(end: LinkRef, address: Address, count: int) -> None:
    requests = [add_address(end, address)] * count
    read = list(message.messages(message.datagram(requests, 100)))
    assert [each.sequence for each in read] == list(range(100, 100 + count))
    assert [bool(each.flags & ACKNOWLEDGE) for each in read] == [False] * (count - 1) + [True]
    assert [each.body for each in read] == [request.body for request in requests]


@given(some.binary(max_size=200))
@example(bytes(40))
def test_parsing_terminates_for_any_bytes(data: bytes) -> None:
    for each in message.messages(data):
        message.attributes(each.body)
    message.attributes(data)
    default = routes.dump_routes().body
    header = bytes([socket.AF_INET]) + default[1:4] + bytes([254, 4, 0, 1]) + default[8:]
    list(routes.parse_default_routes(header + message.attribute(MULTIPATH, bytes(8) + data)))


@given(some.dictionaries(some.integers(1, 0x3FFF), some.binary(max_size=50), max_size=8))
def test_attributes_are_parsed_as_they_were_encoded(attributes: dict[int, bytes]) -> None:
    data = b"".join(message.attribute(kind, value) for kind, value in attributes.items())
    assert len(data) % 4 == 0
    assert message.attributes(data) == attributes


@given(aliases, indexes)
def test_a_link_answer_is_parsed(alias: str, ifindex: int) -> None:
    answer = ifinfmsg()
    answer["index"] = ifindex
    answer["flags"] = UP
    answer["attrs"] = [
        ("IFLA_IFNAME", "tap0"),
        ("IFLA_IFALIAS", alias),
        ("IFLA_MTU", 1500),
        ("IFLA_GROUP", 7),
        ("IFLA_ADDRESS", "02:00:5e:10:00:01"),
        ("IFLA_LINKINFO", {"attrs": [("IFLA_INFO_KIND", "veth")]}),
        ("IFLA_LINK", 5),
        ("IFLA_LINK_NETNSID", 3),
    ]
    answer.encode()
    assert links.parse_link(bytes(answer.data[16:])) == links.LinkInfo(
        ifindex,
        "tap0",
        alias,
        7,
        is_up=True,
        kind="veth",
        mac="02:00:5e:10:00:01",
        mtu=1500,
        peer_index=5,
        peer_netns_id=3,
    )
