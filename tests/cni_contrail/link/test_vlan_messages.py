"""Property: pyroute2 decodes from the messages of nested mode exactly what they ask, and we parse what it encodes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as some
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from cni_contrail.link import vlan_messages
from cni_contrail.link.links import LinkRef
from tests.support.interface_plans import interface_plan
from tests.support.netlink_messages import (
    ACKNOWLEDGE,
    EXCLUSIVELY,
    REQUEST,
    aliases,
    decoded,
    ends,
    indexes,
    link_fields,
    macs,
    names,
)

vlan_ids = some.integers(1, 4094)
netns_ids = some.integers(0, (1 << 31) - 1)
MODES = {2: "vepa", 8: "passthru"}


def parsed(answer: Any) -> bytes:
    """The body of an answer of the kernel, as pyroute2 encodes it."""
    answer.encode()
    return bytes(answer.data[16:])


def link_answer(kind: str, data: dict[str, Any], **more: Any) -> bytes:
    answer = ifinfmsg()
    answer["index"] = 12
    answer["flags"] = 1
    info = [("IFLA_INFO_KIND", kind), ("IFLA_INFO_DATA", {"attrs": list(data.items())})]
    attributes = {"IFLA_IFNAME": "link", "IFLA_IFALIAS": "text", "IFLA_MTU": 1500, "IFLA_GROUP": 0, "IFLA_LINK": 3}
    answer["attrs"] = [*{**attributes, **more}.items(), ("IFLA_LINKINFO", {"attrs": info})]
    return parsed(answer)


@given(names, vlan_ids, indexes)
def test_a_vlan_link_is_encoded_as_planned(name: str, vlan_id: int, parent: int) -> None:
    plan = interface_plan(host_name=name, parent="eth0", vlan_id=vlan_id)
    fields, attributes = decoded(vlan_messages.create_vlan(plan, parent), ifinfmsg)
    assert fields == link_fields(type_=16, flags_=EXCLUSIVELY)
    assert attributes == {
        "IFLA_IFNAME": name,
        "IFLA_LINK": parent,
        "IFLA_LINKINFO": {"IFLA_INFO_KIND": "vlan", "IFLA_INFO_DATA": {"IFLA_VLAN_ID": vlan_id}},
    }


@given(names, names, macs, some.integers(68, 65535), indexes, some.integers(0, (1 << 31) - 1))
def test_a_macvlan_is_encoded_as_planned(
    name: str, temporary: str, mac: str, mtu: int, vlan: int, netns_fd: int
) -> None:
    """In the mode of the upstream plugin; its final name comes later."""
    plan = interface_plan(name=name, mac=mac, mtu=mtu, parent="eth0", vlan_id=5)
    fields, attributes = decoded(vlan_messages.create_macvlan(plan, temporary, vlan, netns_fd), ifinfmsg)
    assert fields == link_fields(type_=16, flags_=EXCLUSIVELY)
    assert attributes == {
        "IFLA_IFNAME": temporary,
        "IFLA_ADDRESS": mac,
        "IFLA_MTU": mtu,
        "IFLA_LINK": vlan,
        "IFLA_NET_NS_FD": netns_fd,
        "IFLA_LINKINFO": {"IFLA_INFO_KIND": "macvlan", "IFLA_INFO_DATA": {"IFLA_MACVLAN_MODE": "vepa"}},
    }


@given(names, ends)
def test_a_guard_is_the_only_macvlan_of_its_link(name: str, vlan: LinkRef) -> None:
    fields, attributes = decoded(vlan_messages.create_guard(name, vlan), ifinfmsg)
    assert fields == link_fields(type_=16, flags_=EXCLUSIVELY)
    assert attributes == {
        "IFLA_IFNAME": name,
        "IFLA_LINK": vlan.ifindex,
        "IFLA_LINKINFO": {"IFLA_INFO_KIND": "macvlan", "IFLA_INFO_DATA": {"IFLA_MACVLAN_MODE": "passthru"}},
    }


@given(ends, names, aliases)
def test_the_final_name_of_a_macvlan_comes_with_its_alias(end: LinkRef, name: str, alias: str) -> None:
    plan = interface_plan(name=name, alias=alias)
    fields, attributes = decoded(vlan_messages.name_macvlan(end, plan), ifinfmsg)
    assert fields == link_fields(type_=19, flags_=REQUEST | ACKNOWLEDGE, index=end.ifindex)
    assert attributes == {"IFLA_IFNAME": name, "IFLA_IFALIAS": alias}


@given(names, aliases)
def test_an_alias_is_encoded_by_name(name: str, alias: str) -> None:
    fields, attributes = decoded(vlan_messages.set_alias(name, alias), ifinfmsg)
    assert fields == link_fields(type_=19, flags_=REQUEST | ACKNOWLEDGE)
    assert attributes == {"IFLA_IFNAME": name, "IFLA_IFALIAS": alias}


@given(names, ends, netns_ids)
def test_links_of_a_sandbox_are_found_and_deleted_by_its_namespace_id(name: str, end: LinkRef, netns_id: int) -> None:
    fields, attributes = decoded(vlan_messages.get_in_netns(name, netns_id), ifinfmsg)
    assert fields == link_fields(type_=18, flags_=REQUEST | ACKNOWLEDGE)
    assert attributes == {"IFLA_IFNAME": name, "IFLA_IF_NETNSID": netns_id, "IFLA_EXT_MASK": 8}
    fields, attributes = decoded(vlan_messages.delete_in_netns(end, netns_id), ifinfmsg)
    assert fields == link_fields(type_=17, flags_=REQUEST | ACKNOWLEDGE, index=end.ifindex)
    assert attributes == {"IFLA_IF_NETNSID": netns_id}


def test_only_vlan_links_are_requested() -> None:
    fields, attributes = decoded(vlan_messages.dump_vlans(), ifinfmsg)
    assert fields == link_fields(type_=18, flags_=REQUEST | ACKNOWLEDGE | 0x300)
    assert attributes == {"IFLA_LINKINFO": {"IFLA_INFO_KIND": "vlan"}, "IFLA_EXT_MASK": 8}


@given(vlan_ids)
def test_a_vlan_link_is_parsed(vlan_id: int) -> None:
    vlan = vlan_messages.parse_vlan(link_answer("vlan", {"IFLA_VLAN_ID": vlan_id, "IFLA_VLAN_PROTOCOL": 0x8100}))
    assert vlan is not None
    assert (vlan.vlan_id, vlan.parent_index, vlan.ref) == (vlan_id, 3, LinkRef("link", 12))
    assert (vlan.info.alias, vlan.info.mtu, vlan.info.is_up) == ("text", 1500, True)


def test_other_links_are_no_vlan_links() -> None:
    """Links of another kind, VLANs of 802.1ad, and VLANs whose parent is in another namespace."""
    assert vlan_messages.parse_vlan(link_answer("macvlan", {"IFLA_MACVLAN_MODE": 2})) is None
    assert vlan_messages.parse_vlan(link_answer("vlan", {"IFLA_VLAN_ID": 5, "IFLA_VLAN_PROTOCOL": 0x88A8})) is None
    elsewhere = link_answer("vlan", {"IFLA_VLAN_ID": 5}, IFLA_LINK_NETNSID=0)
    assert vlan_messages.parse_vlan(elsewhere) is None


@given(some.sampled_from(sorted(MODES)))
def test_the_mode_of_a_macvlan_is_parsed(mode: int) -> None:
    assert vlan_messages.parse_macvlan_mode(link_answer("macvlan", {"IFLA_MACVLAN_MODE": MODES[mode]})) == mode
    assert vlan_messages.parse_macvlan_mode(link_answer("vlan", {"IFLA_VLAN_ID": mode})) == 0
