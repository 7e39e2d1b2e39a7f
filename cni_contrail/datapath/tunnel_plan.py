"""What is to be done with tunnels, in which order. Pure: no kernel.

A tunnel that is right is not touched, and what the kernel can change of one is changed in place. Only one that cannot
become what is desired is replaced, since a name and a VNI exist once. A tunnel is set up when its entries are there,
and one that is not desired is removed when nothing leads to it any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cni_contrail.datapath import tunnel_messages as messages
from cni_contrail.datapath.bridge_ports import unblock_port
from cni_contrail.datapath.tunnel_messages import Tunnel, TunnelInfo
from cni_contrail.link import links
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.named_tuple import NamedTuple


class NewTunnel(NamedTuple):
    """A tunnel to be created, in place of a link that has its name."""

    tunnel: Tunnel
    replaces: LinkRef | None


class TunnelPlan(NamedTuple):
    """Changes in their order. `correct` is in place, `set_up` once the entries are there; `remove` goes last."""

    create: tuple[NewTunnel, ...]
    correct: tuple[NetlinkRequest, ...]
    set_up: tuple[NetlinkRequest, ...]
    remove: tuple[NetlinkRequest, ...]


def plan_tunnels(
    desired: Mapping[str, Tunnel], found: Mapping[str, TunnelInfo], bridge: LinkRef | None = None
) -> TunnelPlan:
    """Returns the changes that bring the tunnels that were found to the desired ones, both by name.

    With a `bridge` tunnels are its ports, and their packets leave by another namespace. One that is created is set up
    by the plan for what is found then.
    """
    usable = {name: found[name] for name in desired if name in found and _is_usable(found[name], desired[name], bridge)}
    missing = [tunnel for name, tunnel in desired.items() if name not in usable]
    return TunnelPlan(
        create=tuple(NewTunnel(each, found[each.name].ref if each.name in found else None) for each in missing),
        correct=tuple(
            request for name, info in usable.items() for request in _corrections(info, desired[name], bridge)
        ),
        set_up=tuple(links.set_up(info.ref) for info in usable.values() if not info.is_up),
        remove=tuple(links.delete(info.ref) for name, info in found.items() if name not in desired),
    )


def _is_usable(info: TunnelInfo, tunnel: Tunnel, bridge: LinkRef | None) -> bool:
    is_in_place = bridge is None or info.is_outside
    return is_in_place and info.has_checksums and messages.can_be_set(info, tunnel)


def _corrections(info: TunnelInfo, tunnel: Tunnel, bridge: LinkRef | None) -> Iterator[NetlinkRequest]:
    yield from messages.set_tunnel(info, tunnel)
    if bridge is None:
        return
    is_port = info.as_port.master == bridge.ifindex
    if not is_port:
        yield messages.set_bridge(info.ref, bridge)
    if not is_port or not info.as_port.has_settings:
        yield messages.set_port_flags(info.ref)
    if is_port and info.as_port.is_blocked:
        yield unblock_port(info.ref)
