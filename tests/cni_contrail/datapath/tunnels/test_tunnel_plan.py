"""Properties of plans of tunnels: any state becomes the desired one, and what is right is not touched."""

import socket
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cni_contrail.datapath.bridge_ports import PortInfo
from cni_contrail.datapath.tunnel_filter import TunnelFilterState, plan_filter
from cni_contrail.datapath.tunnel_messages import Tunnel, TunnelInfo
from cni_contrail.datapath.tunnel_plan import TunnelPlan, plan_tunnels
from cni_contrail.link.bridge_port import bridge_of
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import NetlinkRequest, attributes, unpack_number

NAMES = ("vx0", "vx6")
INDEXES = {"vx0": 7, "vx6": 8}
CREATED = 100  # added to the index of a tunnel that is created
NEWLINK, DELLINK, SETLINK = 16, 17, 19
PORT_STATE = 1
macs = some.sampled_from(["0e:00:c0:00:02:01", "02:00:00:00:00:99"])
locals_ = some.sampled_from(["192.0.2.1", "192.0.2.9", "2001:db8::1"])
tunnels = some.builds(
    Tunnel,
    name=some.just(""),
    vni=some.sampled_from([5, 6]),
    local=locals_,
    port=some.sampled_from([4789, 4790]),
    mac=macs,
    mtu=some.sampled_from([1400, 1450]),
)
BRIDGE = bridge_of({})
bridges = some.sampled_from([BRIDGE, None])
infos = some.builds(
    TunnelInfo,
    tunnel=tunnels,
    ifindex=some.just(0),
    is_up=some.booleans(),
    is_learning=some.booleans(),
    has_checksums=some.booleans(),
    as_port=some.builds(PortInfo, some.sampled_from([0, BRIDGE.ifindex]), some.booleans(), some.booleans()),
    is_outside=some.booleans(),
)
desired_tunnels = some.dictionaries(some.sampled_from(NAMES), tunnels).map(
    lambda found: {name: tunnel._replace(name=name) for name, tunnel in found.items()}
)
found_tunnels = some.dictionaries(some.sampled_from(NAMES), infos).map(
    lambda found: {
        name: info._replace(tunnel=info.tunnel._replace(name=name), ifindex=INDEXES[name])
        for name, info in found.items()
    }
)


def created(tunnel: Tunnel, bridge: LinkRef | None) -> TunnelInfo:
    """What the kernel has after the creation: the port has the kernel's own settings."""
    port = PortInfo(0 if bridge is None else bridge.ifindex, has_settings=False, is_blocked=False)
    index = INDEXES[tunnel.name] + CREATED
    return TunnelInfo(tunnel, index, False, False, True, port, is_outside=bridge is not None)  # in order


def ifindex_of(request: NetlinkRequest) -> int:
    """Index of the link that a request is about."""
    return int.from_bytes(request.body[4:8], sys.byteorder)


def changed(info: TunnelInfo, request: NetlinkRequest) -> TunnelInfo:
    """What a tunnel is after a request of the kernel about it."""
    values = attributes(request.body[16:])
    linkinfo = attributes(values.get(18, b""))
    data, port = attributes(linkinfo.get(2, b"")), attributes(linkinfo.get(5, b""))
    tunnel, as_port = info.tunnel, info.as_port
    tunnel = tunnel._replace(mac=values[1].hex(":") if 1 in values else tunnel.mac)
    tunnel = tunnel._replace(mtu=unpack_number(values[4]) if 4 in values else tunnel.mtu)
    if 4 in data or 17 in data:
        local = data.get(17) or data[4]
        family = socket.AF_INET6 if len(local) == 16 else socket.AF_INET
        tunnel = tunnel._replace(local=socket.inet_ntop(family, local))
    if 10 in values:  # a new port has the kernel's own settings
        as_port = PortInfo(unpack_number(values[10]), has_settings=False, is_blocked=False)
    if PORT_STATE in port:
        as_port = as_port._replace(is_blocked=False)
    elif port:
        as_port = as_port._replace(has_settings=True)
    is_up = info.is_up or request.kind == SETLINK
    return info._replace(tunnel=tunnel, as_port=as_port, is_up=is_up, is_learning=info.is_learning and 7 not in data)


def after(
    found: dict[str, TunnelInfo], plan: TunnelPlan, requests: tuple[NetlinkRequest, ...], bridge: LinkRef | None
) -> dict[str, TunnelInfo]:
    """What the kernel has after creations and requests of a plan."""
    names = {info.ifindex: name for name, info in found.items()}
    left = dict(found)
    for tunnel, replaces in plan.create:
        assert (replaces is None) == (tunnel.name not in left)
        left[tunnel.name] = created(tunnel, bridge)
    for request in requests:
        name = names[ifindex_of(request)]
        if request.kind == DELLINK:
            del left[name]
        else:
            left[name] = changed(left[name], request)
    return left


@given(desired=desired_tunnels, found=found_tunnels, bridge=bridges)
def test_any_tunnels_become_the_desired_ones(
    desired: dict[str, Tunnel], found: dict[str, TunnelInfo], bridge: LinkRef | None
) -> None:
    first = plan_tunnels(desired, found, bridge)
    made = after(found, first, (), bridge)
    second = plan_tunnels(desired, made, bridge)
    assert not second.create
    left = after(made, second, (*second.correct, *second.set_up, *second.remove), bridge)
    assert {name: info.tunnel for name, info in left.items()} == desired
    assert all(info.is_up and not info.is_learning and info.has_checksums for info in left.values())
    if bridge is not None:
        right = PortInfo(bridge.ifindex, has_settings=True, is_blocked=False)
        assert all(info.is_outside and info.as_port == right for info in left.values())
    assert plan_tunnels(desired, left, bridge) == TunnelPlan((), (), (), ())


@given(desired=desired_tunnels, found=found_tunnels, bridge=bridges)
def test_a_desired_tunnel_that_can_stay_is_neither_replaced_nor_removed(
    desired: dict[str, Tunnel], found: dict[str, TunnelInfo], bridge: LinkRef | None
) -> None:
    plan = plan_tunnels(desired, found, bridge)
    for name in desired.keys() & found.keys():
        info, tunnel = found[name], desired[name]
        same = (info.tunnel.vni, info.tunnel.port, ":" in info.tunnel.local)
        can_stay = same == (tunnel.vni, tunnel.port, ":" in tunnel.local) and info.has_checksums
        can_stay = can_stay and (bridge is None or info.is_outside)
        assert can_stay == (name not in [new.tunnel.name for new in plan.create])
    removed = {ifindex_of(each) for each in plan.remove}
    assert removed == {info.ifindex for name, info in found.items() if name not in desired}
    assert all(each.kind == DELLINK for each in plan.remove)
    assert all(each.kind == NEWLINK for each in plan.correct)
    assert all(each.kind == SETLINK for each in plan.set_up)


@given(desired=desired_tunnels, bridge=bridges)
def test_what_is_right_has_no_operation(desired: dict[str, Tunnel], bridge: LinkRef | None) -> None:
    port = PortInfo(0 if bridge is None else bridge.ifindex, has_settings=True, is_blocked=False)
    found = {name: created(tunnel, bridge)._replace(is_up=True, as_port=port) for name, tunnel in desired.items()}
    assert plan_tunnels(desired, found, bridge) == TunnelPlan((), (), (), ())


def test_a_tunnel_that_is_created_is_not_up_before_its_entries_are_there() -> None:
    tunnel = Tunnel("vx0", 5, "192.0.2.1", 4789, "0e:00:c0:00:02:01", 1450)
    plan = plan_tunnels({"vx0": tunnel}, {}, BRIDGE)
    assert [new.tunnel for new in plan.create] == [tunnel]
    assert plan.set_up == ()
    plan = plan_tunnels({"vx0": tunnel}, {"vx0": created(tunnel, BRIDGE)}, BRIDGE)
    assert [each.what for each in plan.set_up] == ["set link vx0 up"]


@pytest.mark.parametrize("known", [frozenset(), frozenset({"192.0.2.2"}), frozenset({"192.0.2.3", "2001:db8::3"})])
def test_a_filter_that_is_replaced_accepts_all_that_was_accepted(known: frozenset[str]) -> None:
    wanted = frozenset({"192.0.2.2", "2001:db8::2"})
    plan = plan_filter(TunnelFilterState(None, known, 0), wanted, 4789)
    last = "".join(each.body.hex() for each in plan.requests if each.what.startswith("add elements"))
    for address in known | wanted:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        assert socket.inet_pton(family, address).hex() in last
    assert plan.stale == known - wanted
